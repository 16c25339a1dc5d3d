//! Reads what `ptxas -v` says of each kernel.

/// What one kernel uses.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Usage {
    pub(super) kernel: String,
    pub(super) registers: u32,
    /// Static shared memory, bytes. Dynamic shared memory is not known to ptxas.
    pub(super) shared: u32,
    /// Stack frame, bytes.
    pub(super) stack: u32,
    /// Stores and loads of spilled registers together, bytes.
    pub(super) spills: u32,
}

/// The kernels in the order of the log.
pub(super) fn usages(log: &str) -> Vec<Usage> {
    let mut kernels: Vec<Usage> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let kernel = rest.split('\'').next().unwrap_or_default().to_owned();
            kernels.push(Usage { kernel, ..Usage::default() });
        }
        let Some(usage) = kernels.last_mut() else { continue };
        if line.contains("spill stores") {
            usage.stack = number_before(line, " bytes stack frame");
            usage.spills =
                number_before(line, " bytes spill stores") + number_before(line, " bytes spill loads");
        }
        if line.contains(" registers") && line.contains("Used ") {
            usage.registers = number_before(line, " registers");
            usage.shared = number_before(line, " bytes smem");
        }
    }
    kernels
}

/// The lines that tell of lost performance, whatever their level.
pub(super) fn complaints(log: &str) -> Vec<&str> {
    let bad = ["Potential Performance Loss", "warning", "error", "Warning", "Error"];
    log.lines().filter(|line| bad.iter().any(|word| line.contains(word))).collect()
}

/// The number that stands right before `words`; 0 if there is none.
fn number_before(line: &str, words: &str) -> u32 {
    let Some(end) = line.find(words) else { return 0 };
    let digits = line[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    line[digits..end].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ptxas 13.0 prints it.
    const LOG: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_80'
ptxas info    : Function properties for first
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 49152 bytes smem, 408 bytes cmem[0]
ptxas info    : Compile time = 5.200 ms
ptxas info    : Compiling entry function 'second' for 'sm_80'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 376 bytes cmem[0]
";

    #[test]
    fn every_kernel_is_read() {
        let first = Usage { kernel: "first".into(), registers: 168, shared: 49152, stack: 16, spills: 20 };
        let second = Usage { kernel: "second".into(), registers: 8, ..Usage::default() };
        assert_eq!(usages(LOG), [first, second]);
        assert_eq!(complaints(LOG), Vec::<&str>::new());
    }

    #[test]
    fn lost_performance_is_a_complaint() {
        let line =
            "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized";
        assert_eq!(complaints(line), [line]);
    }
}
