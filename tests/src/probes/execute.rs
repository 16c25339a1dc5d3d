//! Runs a probe on the executor.

use tile_codegen::simt::{Access, Memory, Program, Run};

use super::{ENTRY, Probe};

impl Probe {
    /// The output that the executor gives with a schedule.
    ///
    /// # Errors
    /// If the kernel is malformed, or the executor reports a fault.
    pub fn execute(&self, seed: u64) -> Result<Vec<u8>, String> {
        let program = Program::new(&self.module, ENTRY).map_err(|error| error.to_string())?;
        let mut memory = Memory::new();
        let input = memory.add("input", &self.input, Access::Read);
        let output = memory.add("output", &vec![0; self.output], Access::Write);
        let params = vec![input.to_le_bytes().to_vec(), output.to_le_bytes().to_vec()];
        let run = Run { seed, ..Run::new(&program, [self.blocks, 1, 1], params) };
        let outcome = run.execute(&memory).map_err(|error| error.to_string())?;
        if let Some(report) = outcome.reports.first() {
            return Err(format!("{} reports, the first: {report:?}", outcome.reports.len()));
        }
        Ok(memory.bytes(output).expect("the region was added"))
    }
}
