//! Runs a probe on the executor, and on a GPU.

use tile_runtime::Device;
use tile_runtime::probing::{ProbeBuffer, ProbeParam, Probing};

use super::{Probe, Side};

impl Probe {
    /// The output that the executor gives with a schedule.
    ///
    /// # Errors
    /// If the kernel is malformed, or the executor reports a fault.
    pub fn execute(&self, seed: u64) -> Result<Vec<u8>, String> {
        self.launch(|probing| probing.execute(seed))
    }

    /// The output that a GPU gives, after the executor had no complaints.
    ///
    /// # Errors
    /// As [`Probe::execute`], or those of the driver.
    pub fn run(&self, device: &Device) -> Result<Vec<u8>, String> {
        self.launch(|probing| probing.run(device))
    }

    fn launch(
        &self,
        run: impl Fn(&Probing<'_>) -> tile_runtime::Result<Vec<Vec<u8>>>,
    ) -> Result<Vec<u8>, String> {
        let buffers = [
            ProbeBuffer { name: "input", bytes: self.input.clone(), written: false },
            ProbeBuffer { name: "output", bytes: vec![0; self.output], written: true },
        ];
        let map = |(side, map): &(Side, _)| ProbeParam::TensorMap {
            buffer: usize::from(*side == Side::Output),
            map: Clone::clone(map),
        };
        let params: Vec<_> = [ProbeParam::Buffer(0), ProbeParam::Buffer(1)]
            .into_iter()
            .chain(self.maps.iter().map(map))
            .collect();
        let (name, module, blocks) = (&self.name, &self.module, self.blocks);
        let writes_past_tensor = self.writes_past_tensor;
        let probing =
            Probing { name, module, blocks, buffers: &buffers, params: &params, writes_past_tensor };
        let mut outputs = run(&probing).map_err(|error| error.to_string())?;
        Ok(outputs.pop().expect("one buffer is written"))
    }
}
