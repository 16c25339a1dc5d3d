//! The PTX executor as a device: results, faults with their source lines, counts, and what it refuses.

use tile_runtime::executor::{Class, ReportKind};
use tile_runtime::prelude::*;
use tile_runtime::{DeviceKind, Error};

#[tile_kernel]
fn scale(x: Tensor<f32, 1>, y: TensorMut<f32, 1>, by: f32, block: Const<usize>) {
    store(y, (bid(0),), load(x, (bid(0),), (block,)) * by);
}

/// Every block writes its number to the same place.
#[tile_kernel]
fn racing(y: TensorMut<i32, 1>) {
    let number = broadcast_to(bid(0), (32,));
    store(y, (0,), number);
}

#[tile_kernel]
fn flipped(
    x: Tensor<bool, 1>,
    n: Tensor<i64, 1>,
    h: Tensor<f16, 1>,
    out: TensorMut<i64, 1>,
    not: TensorMut<bool, 1>,
) {
    let flag = load(x, (0,), (64,));
    store(not, (0,), flag == false);
    store(out, (0,), where_(flag, load(n, (0,), (64,)), load(h, (0,), (64,)).cast::<i64>()));
}

/// Two places race: the blocks after the first read what that one writes.
#[tile_kernel]
fn reads_what_others_write(y: TensorMut<i32, 1>, z: TensorMut<i32, 1>) {
    store(y, (bid(0),), arange::<i32>(32) + 1);
    store(z, (bid(0),), load(y, (0,), (32,)));
}

/// Stores what lies in `y`, which it has written up to `n` elements.
#[tile_kernel]
fn partly(n: Tensor<i32, 1>, y: TensorMut<i32, 1>, z: TensorMut<i32, 1>) {
    store(y, (0,), load(n, (0,), (32,)));
    store(z, (bid(0),), load(y, (bid(0),), (32,)));
}

#[tile_kernel]
fn copied(from: Tensor<i32, 1>, to: TensorMut<i32, 1>) {
    store(to, (0,), load(from, (0,), (32,)));
}

fn executor(seeds: std::ops::Range<u64>) -> Device {
    let options = ExecutorOptions { seeds: seeds.collect(), ..ExecutorOptions::default() };
    Device::ptx_executor_with(&Target::SM_80, options)
}

fn fault(error: Error) -> tile_runtime::ExecutorError {
    match error {
        Error::Executor(error) => *error,
        other => panic!("unexpected: {other}"),
    }
}

#[test]
fn a_launch_gives_the_results_of_its_ptx() -> Result<()> {
    let device = executor(0..4);
    let host: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let x = DeviceTensor::from_slice(&device, &[1000], &host)?;
    // A view inside a larger tensor: what lies around it stays.
    let whole = DeviceTensor::full(&device, &[1100], -1.0f32)?;
    let mut y = whole.slice(0, 50..1050)?;
    scale(&x, &mut y, 3.0, 128).launch(8)?;
    for (i, value) in whole.to_vec()?.into_iter().enumerate() {
        let inside = (50..1050).contains(&i);
        assert_eq!(value, if inside { 3.0 * (i - 50) as f32 } else { -1.0 }, "{i}");
    }
    assert_eq!(x.to_vec()?, host);
    Ok(())
}

#[test]
fn elements_of_every_size_come_and_go() -> Result<()> {
    let device = executor(0..2);
    let flags: Vec<bool> = (0..64).map(|i| i % 3 == 0).collect();
    let numbers: Vec<i64> = (0..64).map(|i| (i - 30) << 33).collect();
    let halves: Vec<f16> = (0..64).map(|i| f16::from_f32(i as f32)).collect();
    let x = DeviceTensor::from_slice(&device, &[64], &flags)?;
    let n = DeviceTensor::from_slice(&device, &[64], &numbers)?;
    let h = DeviceTensor::from_slice(&device, &[64], &halves)?;
    let mut out = DeviceTensor::<i64>::zeros(&device, &[64])?;
    let mut not = DeviceTensor::<bool>::zeros(&device, &[64])?;
    flipped(&x, &n, &h, &mut out, &mut not).launch(1)?;
    let expected: Vec<i64> = (0..64).map(|i| if i % 3 == 0 { (i - 30) << 33 } else { i }).collect();
    assert_eq!(out.to_vec()?, expected);
    assert_eq!(not.to_vec()?, flags.iter().map(|&flag| !flag).collect::<Vec<_>>());
    Ok(())
}

/// Both inside one part of the grid and between parts.
#[test]
fn racing_blocks_are_an_error_with_the_source_line() -> Result<()> {
    for blocks in [2, 40] {
        let device = executor(0..8);
        let mut y = DeviceTensor::full(&device, &[32], -7)?;
        let error = racing(&mut y).launch(blocks).expect_err("the blocks race");
        let text = error.to_string();
        let found = fault(error);
        assert!(found.reports.iter().any(|report| report.kind == ReportKind::Race), "{text}");
        assert_eq!((found.kernel.as_str(), found.device.as_str(), found.seed), ("racing", "ptx:sm_80", 0));
        for part in [
            "kernel `racing`",
            "data race",
            "ptx_executor.rs:16",
            "store(y, (0,), number);",
            "st.global",
            "block ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(y.to_vec()?, vec![-7; 32], "a faulty launch changes nothing");
        assert_eq!(device.executor_counts().map(|counts| counts.total()), Some(0));
    }
    Ok(())
}

/// A single block has nobody to race with.
#[test]
fn one_block_of_it_is_fine() -> Result<()> {
    let mut y = DeviceTensor::full(&executor(0..8), &[32], -7)?;
    racing(&mut y).launch(1)?;
    assert_eq!(y.to_vec()?, vec![0; 32]);
    Ok(())
}

#[test]
fn a_launch_beyond_the_budget_ends() -> Result<()> {
    let options = ExecutorOptions { budget: 3, ..ExecutorOptions::default() };
    let device = Device::ptx_executor_with(&Target::SM_80, options);
    let x = DeviceTensor::<f32>::zeros(&device, &[1024])?;
    let mut y = DeviceTensor::<f32>::zeros(&device, &[1024])?;
    let found = fault(scale(&x, &mut y, 3.0, 1024).launch(1).expect_err("more than 3 instructions"));
    assert_eq!(found.reports.iter().map(|report| report.kind).collect::<Vec<_>>(), [ReportKind::Budget]);
    assert!(found.text.contains("have not ended"), "{}", found.text);
    Ok(())
}

#[test]
fn counts_add_up_and_do_not_depend_on_the_number_of_seeds() -> Result<()> {
    let counted = |seeds, launches| -> Result<_> {
        let device = executor(seeds);
        let x = DeviceTensor::<f32>::zeros(&device, &[4096])?;
        let mut y = DeviceTensor::<f32>::zeros(&device, &[4096])?;
        for _ in 0..launches {
            scale(&x, &mut y, 3.0, 1024).launch(4)?;
        }
        Ok(device.executor_counts().expect("an executor"))
    };
    let (one, two) = (counted(0..1, 1)?, counted(0..3, 2)?);
    // 4096 elements of 4 bytes, each sector used in full.
    assert_eq!((one.global_loads.bytes, one.global_stores.bytes), (16384, 16384));
    assert_eq!((one.global_loads.parts, one.global_stores.parts), (512, 512));
    assert_eq!(one.shared_loads.requests, 0);
    assert!(one.of(Class::Float) >= 4096 / 32);
    assert_eq!(two.total(), 2 * one.total());
    assert!(one.to_string().contains("global loads"), "{one}");
    assert!(Device::cpu().executor_counts().is_none());
    Ok(())
}

#[test]
fn every_executor_is_a_device_of_its_own() -> Result<()> {
    let (one, other) = (Device::parse("ptx:sm_80")?, Device::ptx_executor(&Target::SM_80));
    assert_eq!(one, one.clone());
    assert_ne!(one, other);
    assert_ne!(one, Device::cpu());
    assert_eq!(one.kind(), DeviceKind::PtxExecutor { target: Target::SM_80 });
    assert_eq!(tile_runtime::target_of(&one), Some(Target::SM_80));
    let x = DeviceTensor::<f32>::zeros(&one, &[8])?;
    let mut y = DeviceTensor::<f32>::zeros(&Device::cpu(), &[8])?;
    let error = scale(&x, &mut y, 1.0, 8).launch(1).expect_err("two devices");
    assert!(matches!(error, Error::DeviceMismatch { .. }), "{error}");
    assert_eq!(x.to_device(&Device::cpu())?.to_vec()?, vec![0.0; 8]);
    Ok(())
}

/// Both accesses are named, each with its thread, its PTX line and its line of the kernel.
#[test]
fn a_race_names_both_accesses() -> Result<()> {
    // Blocks of one part of the grid, and of two.
    for blocks in [2, 40] {
        let device = executor(0..1);
        let mut y = DeviceTensor::full(&device, &[32 * 64], 0)?;
        let mut z = DeviceTensor::full(&device, &[32 * 64], 0)?;
        let error = reads_what_others_write(&mut y, &mut z).launch(blocks).expect_err("the blocks race");
        let text = error.to_string();
        let found = fault(error);
        let race = found.reports.iter().find(|report| report.kind == ReportKind::Race).expect("a race");
        let other = race.other.as_ref().expect("the other access");
        assert_ne!(race.block, other.block, "{text}");
        assert_ne!(race.line, other.line, "{text}");
        assert!(race.lane.is_some() && other.warp.is_some() && other.lane.is_some(), "{text}");
        let texts = [race.text.as_str(), other.text.as_str()];
        for access in ["st.global", "ld.global"] {
            assert!(texts.iter().any(|text| text.contains(access)), "{text}");
        }
        for part in [
            "store(y, (bid(0),), arange::<i32>(32) + 1);",
            "store(z, (bid(0),), load(y, (0,), (32,)));",
            "the other access, a ",
            &format!("PTX line {}: {}", race.line, race.text),
            &format!("PTX line {}: {}", other.line, other.text),
            &format!("block {}, thread ", race.block),
            &format!("block {}, thread ", other.block),
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    Ok(())
}

#[test]
fn memory_that_nobody_has_written_is_not_to_be_read() -> Result<()> {
    let device = executor(0..8);
    let n = DeviceTensor::from_slice(&device, &[32], &(0..32).collect::<Vec<i32>>())?;
    let mut y = DeviceTensor::<i32>::uninit(&device, &[64])?;
    let mut z = DeviceTensor::<i32>::uninit(&device, &[64])?;
    // The first half of y is written by the kernel itself.
    partly(&n, &mut y, &mut z).launch(1)?;
    assert_eq!(z.slice(0, 0..32)?.to_vec()?, n.to_vec()?);
    // Launches see what earlier ones wrote, and nothing more: a copy of z's first half is fine, its second half is not.
    let mut out = DeviceTensor::<i32>::uninit(&device, &[32])?;
    copied(&z.slice(0, 0..32)?, &mut out).launch(1)?;
    assert_eq!(out.to_vec()?, n.to_vec()?);
    let error = copied(&z.slice(0, 32..64)?, &mut out).launch(1).expect_err("nobody has written it");
    let text = error.to_string();
    let found = fault(error);
    let report = &found.reports[0];
    assert_eq!(
        (report.kind, report.block, report.lane),
        (ReportKind::UninitialisedMemory, 0, Some(0)),
        "{text}"
    );
    assert!(report.text.contains("ld.global"), "{text}");
    assert!(text.contains("store(to, (0,), load(from, (0,), (32,)));"), "{text}");
    // A faulty launch writes nothing; what the host writes counts.
    z.slice(0, 32..64)?.copy_from_slice(&[7; 32])?;
    copied(&z.slice(0, 32..64)?, &mut out).launch(1)?;
    assert_eq!(out.to_vec()?, vec![7; 32]);
    // Single elements count: all but one are written here.
    let most = DeviceTensor::<i32>::uninit(&device, &[32])?;
    most.slice(0, 0..20)?.fill(1)?;
    most.slice(0, 21..32)?.fill(1)?;
    let found = fault(copied(&most, &mut out).launch(1).expect_err("element 20 is missing"));
    assert_eq!(found.reports[0].kind, ReportKind::UninitialisedMemory, "{}", found.text);
    Ok(())
}

/// Elements of zeros and of copies count as written.
#[test]
fn memory_that_was_given_may_be_read() -> Result<()> {
    let device = executor(0..2);
    let mut out = DeviceTensor::<i32>::uninit(&device, &[32])?;
    let zeros = DeviceTensor::<i32>::zeros(&device, &[32])?;
    for from in [
        &zeros,
        &DeviceTensor::full(&device, &[32], 5)?,
        &zeros.to_device(&Device::cpu())?.to_device(&device)?,
    ] {
        copied(from, &mut out).launch(1)?;
        assert_eq!(out.to_vec()?, from.to_vec()?);
    }
    Ok(())
}

/// Code for Hopper runs nowhere else; code for Ampere runs there too.
#[test]
fn targets_that_the_device_does_not_run_are_refused() -> Result<()> {
    let run = |own: &Target, asked: &Target| {
        let device = Device::ptx_executor(own);
        let x = DeviceTensor::from_slice(&device, &[3], &[1.0f32, 2.0, 3.0])?;
        let mut y = DeviceTensor::<f32>::zeros(&device, &[3])?;
        scale(&x, &mut y, 2.0, 8).target(asked).launch(1)?;
        y.to_vec()
    };
    for (own, asked) in
        [(Target::SM_80, Target::SM_80), (Target::SM_90A, Target::SM_80), (Target::SM_90A, Target::SM_90A)]
    {
        assert_eq!(run(&own, &asked)?, [2.0, 4.0, 6.0], "{} on {}", asked.name, own.name);
    }
    let error = run(&Target::SM_80, &Target::SM_90A).expect_err("an sm_80 device");
    assert!(matches!(error, Error::Target { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "kernel `scale` was to be compiled for sm_90a, which ptx:sm_80 does not run: it runs sm_80; leave `.target(..)` out, \
         or ask for one of these"
    );
    Ok(())
}
