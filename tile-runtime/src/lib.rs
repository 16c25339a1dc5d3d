//! Devices, tensors and launches.
