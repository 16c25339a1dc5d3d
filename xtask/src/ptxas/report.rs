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
    log.lines().filter(|line| bad.iter().any(|word| line.contains(word)) || is_advice(line)).collect()
}

/// Whether the line has a number from C7500 to C7699: what ptxas did to the instructions of Hopper and why, such as waits
/// that it had to add, or registers that do not move.
fn is_advice(line: &str) -> bool {
    line.match_indices("(C7").any(|(at, start)| {
        let rest = &line.as_bytes()[at + start.len()..];
        matches!(rest, [b'5' | b'6', tens, ones, b')', ..] if tens.is_ascii_digit() && ones.is_ascii_digit())
    })
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

    /// What ptxas 13.0 says of a kernel for `sm_90a` without a wait, without a fence, and with a number of registers that
    /// it cannot know; the first line is from ptxas 12.
    const ADVICE: &str = "\
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function 'product'
ptxas info    : (C7517) warpgroup.wait is injected in around line 169 by compiler to allow use of registers defined by GMMA in function 'product'
ptxas info    : (C7519) warpgroup.arrive is injected in around line 148 by compiler to allow use of registers in GMMA in function 'product'
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.
";

    #[test]
    fn lost_performance_is_a_complaint() {
        assert_eq!(complaints(ADVICE), ADVICE.lines().collect::<Vec<_>>());
        for line in ADVICE.lines().skip(1) {
            assert_eq!(complaints(&format!("{LOG}{line}\n{LOG}")), [line]);
        }
    }

    #[test]
    fn other_numbers_are_no_complaint() {
        assert_eq!(complaints("ptxas info    : (C7600) x"), ["ptxas info    : (C7600) x"]);
        for line in ["ptxas info    : (C7499) x", "ptxas info    : (C7700) x", "(C75)", "(C751x)", "(C7"] {
            assert_eq!(complaints(line), Vec::<&str>::new());
        }
    }
}
