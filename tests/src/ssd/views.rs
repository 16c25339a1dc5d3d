//! Inputs as views: slices of one projection, broadcasts, transposes, strides of nothing, reverse order.

use half::bf16;
use mamba2::Sequences;
use mamba2::case::{Case, Dtype, Skip};
use mamba2::inputs::generate;
use mamba2::resident::{HostOutputs, Resident};
use mamba2::tolerance::{self, relative_l2};
use tile_runtime::DeviceTensor;

use super::bench::{Bench, Problem, full, reference_of, shape};

/// z, x, B, C and dt side by side in rows of an odd number of elements, with one head and three, also packed.
pub fn slices_of_one_fused_row_are_taken_as_they_are(bench: &Bench) {
    for (heads, packed) in [(1, false), (3, false), (1, true), (3, true)] {
        let mut case = full(shape(1, 70, heads, 64, 16, 1), Dtype::BF16, 11);
        case.dt_dtype = Dtype::BF16;
        case.dt.iter_mut().for_each(|dt| *dt = Dtype::BF16.round(*dt));
        case.seq_idx = packed.then(|| (0..70).map(|t| i32::from(t >= 33)).collect());
        let contiguous = Resident::<bf16, bf16>::new(&bench.device, &case).expect("the case fits");
        let inner = 64 * heads;
        let row = 2 * inner + 2 * 16 + heads;
        let z = case.z.as_ref().expect("a gate");
        let mut rows = Vec::new();
        for t in 0..70 {
            for (values, width) in
                [(z, inner), (&case.x, inner), (&case.b, 16), (&case.c, 16), (&case.dt, heads)]
            {
                rows.extend(values[t * width..][..width].iter().map(|&value| bf16::from_f32(value)));
            }
        }
        let fused = bench.tensor(&[1, 70, row], &rows);
        let (batch, stride) = (70 * row as i64, row as i64);
        let view = |shape: &[usize], inner: &[i64], offset: usize| -> DeviceTensor<bf16> {
            let strides: Vec<i64> = [batch, stride].iter().chain(inner).copied().collect();
            fused.with_strides(shape, &strides, offset).expect("inside of the row")
        };
        let views = Resident::<bf16, bf16> {
            z: Some(view(&[1, 70, heads, 64], &[64, 1], 0)),
            x: view(&[1, 70, heads, 64], &[64, 1], inner),
            b: view(&[1, 70, 1, 16], &[16, 1], 2 * inner),
            c: view(&[1, 70, 1, 16], &[16, 1], 2 * inner + 16),
            dt: view(&[1, 70, heads], &[1], 2 * inner + 32),
            ..contiguous
        };
        let contiguous = Resident::<bf16, bf16>::new(&bench.device, &case).expect("the case fits");
        let pass = |r: &Resident<bf16, bf16>| r.forward(&bench.options(64)).expect("a pass");
        close(bench, &case, &pass(&views), &pass(&contiguous));
        if !packed {
            let step = |r: &Resident<bf16, bf16>| r.step(&bench.step_options()).expect("a step");
            close(bench, &case, &step(&views), &step(&contiguous));
        }
    }
}

/// Equal on the CPU, and both near float64 everywhere.
fn close(bench: &Bench, case: &Case, found: &HostOutputs, contiguous: &HostOutputs) {
    if bench.is_cpu() {
        assert_eq!(found, contiguous);
    }
    let (right, limits) = (reference_of(case), tolerance::forward(Dtype::BF16, None));
    for out in [found, contiguous] {
        let (y, state) = (relative_l2(&out.y, &right.y), relative_l2(&out.final_states, &right.final_states));
        assert!(y <= limits.y && state <= limits.state, "{}: y {y:e}, state {state:e}", case.shape);
    }
}

/// dt in rows of a wide table, 1031 elements apart.
pub fn rows_far_apart_equal_their_copy(bench: &Bench) {
    let case = generate(shape(1, 130, 1, 16, 16, 1), Dtype::F32, 17);
    let base = bench.load(&case);
    let (pass, step) = (bench.pass(&base, 64), bench.step(&base));
    let mut table = vec![f32::NAN; 129 * 1031 + 1];
    case.dt.iter().enumerate().for_each(|(t, &dt)| table[t * 1031] = dt);
    let dt = bench.tensor(&[table.len()], &table);
    let dt = dt.with_strides(&[1, 130, 1], &[130 * 1031, 1031, 1], 0).expect("inside of the table");
    let far = Problem { dt, ..base };
    bench.same(&bench.pass(&far, 64), &pass);
    bench.same(&bench.step(&far), &step);
}

/// The stride of an axis of one element is never used.
pub fn strides_of_a_dimension_of_one_mean_nothing(bench: &Bench) {
    let case = generate(shape(1, 1, 2, 16, 16, 1), Dtype::F32, 12);
    let base = bench.load(&case);
    let (pass, step) = (bench.pass(&base, 64), bench.step(&base));
    for stride in [0, 1, 1_000_000_000] {
        let view = |tensor: &DeviceTensor<f32>, shape: &[usize], strides: &[i64]| {
            tensor.with_strides(shape, strides, 0).expect("one element there")
        };
        let views = Problem {
            x: view(&base.x, &[1, 1, 2, 16], &[stride, stride, 16, 1]),
            dt: view(&base.dt, &[1, 1, 2], &[stride, stride, 1]),
            b: view(&base.b, &[1, 1, 1, 16], &[stride, stride, stride, 1]),
            c: view(&base.c, &[1, 1, 1, 16], &[stride, stride, stride, 1]),
            ..bench.load(&case)
        };
        bench.same(&bench.pass(&views, 64), &pass);
        bench.same(&bench.step(&views), &step);
    }
    // One head of one channel, and a state of one value.
    let case = generate(shape(2, 9, 1, 1, 1, 1), Dtype::F32, 12);
    let base = bench.load(&case);
    let (pass, step) = (bench.pass(&base, 16), bench.step(&base));
    for stride in [0, 1, 1_000_000_000] {
        let view = |tensor: &DeviceTensor<f32>, shape: &[usize], strides: &[i64]| {
            tensor.with_strides(shape, strides, 0).expect("one element there")
        };
        let views = Problem {
            x: view(&base.x, &[2, 9, 1, 1], &[9, 1, stride, stride]),
            dt: view(&base.dt, &[2, 9, 1], &[9, 1, stride]),
            b: view(&base.b, &[2, 9, 1, 1], &[9, 1, stride, stride]),
            a: view(&base.a, &[1], &[stride]),
            ..bench.load(&case)
        };
        bench.same(&bench.pass(&views, 16), &pass);
        bench.same(&bench.step(&views), &step);
    }
}

/// dt, A, its bias and skip weights with stride 0, and skip weights a head and a channel.
pub fn broadcast_inputs_equal_their_copies(bench: &Bench) {
    let size = shape(2, 40, 3, 16, 16, 1);
    let copies = Case {
        dt_bias: Some(vec![0.125; 3]),
        d: Some(Skip::PerDim((0..48).map(|i| (i % 16) as f32 - 7.0).collect())),
        ..generate(size, Dtype::F32, 18)
    };
    let copies = Case { dt: vec![0.25; 240], a: vec![-0.3; 3], ..copies };
    bench.matches_reference(&copies, 64);
    let base = bench.load(&copies);
    let (pass, step) = (bench.pass(&base, 64), bench.step(&base));
    let wide = |values: &[f32], shape: &[usize]| {
        bench.tensor(&vec![1; shape.len()], values).broadcast_to(shape).expect("extents of 1")
    };
    let d: Vec<f32> = (0..16).map(|i| i as f32 - 7.0).collect();
    let views = Problem {
        dt: wide(&[0.25], &[2, 40, 3]),
        a: wide(&[-0.3], &[3]),
        dt_bias: Some(wide(&[0.125], &[3])),
        d: Some(bench.tensor(&[1, 16], &d).broadcast_to(&[3, 16]).expect("an extent of 1")),
        ..base
    };
    bench.same(&bench.pass(&views, 64), &pass);
    bench.same(&bench.step(&views), &step);
    // One weight a head equals it repeated along the channels.
    let heads = bench.tensor(&[3], &[1.0, -2.0, 0.5]);
    let channels = heads.with_strides(&[3, 16], &[1, 0], 0).expect("three values");
    let by = |d: &DeviceTensor<f32>| Problem { d: Some(d.clone()), ..bench.load(&copies) };
    bench.same(&bench.pass(&by(&channels), 64), &bench.pass(&by(&heads), 64));
    bench.same(&bench.step(&by(&channels)), &bench.step(&by(&heads)));
    bench.matches_reference(&Case { d: Some(Skip::PerHead(vec![1.0, -2.0, 0.5])), ..copies }, 64);
}

/// Three equal rows, stored as [tokens, batch, ..] and seen as [batch, tokens, ..].
pub fn equal_rows_of_a_transposed_batch_give_equal_bits(bench: &Bench) {
    let one = generate(shape(1, 50, 2, 16, 16, 1), Dtype::F32, 13);
    let base = bench.load(&one);
    let expected = [bench.pass(&base, 64), bench.step(&base)];
    let repeat = |values: &[f32], shape: &[usize]| {
        let width = values.len() / 50;
        let rows: Vec<f32> = values.chunks(width).flat_map(|row| row.repeat(3)).collect();
        let stored: Vec<usize> = [50, 3].iter().chain(shape).copied().collect();
        bench.tensor(&stored, &rows).transpose(0, 1).expect("two axes")
    };
    let three = Problem {
        x: repeat(&one.x, &[2, 16]),
        dt: repeat(&one.dt, &[2]),
        b: repeat(&one.b, &[1, 16]),
        c: repeat(&one.c, &[1, 16]),
        ..base
    };
    for ((y, states), expected) in [bench.pass(&three, 64), bench.step(&three)].into_iter().zip(expected) {
        let (ys, ends) = (expected.0.len(), expected.1.len());
        for (y, states) in y.chunks(ys).zip(states.chunks(ends)) {
            bench.same(&(y.to_vec(), states.to_vec()), &expected);
        }
        assert!(y.chunks(ys).all(|row| row == &y[..ys]), "rows of y differ");
        assert!(states.chunks(ends).all(|row| row == &states[..ends]), "states differ");
    }
}

/// Strides below 0 are read as they are.
pub fn channels_in_reverse_order_equal_their_copy(bench: &Bench) {
    let case = full(shape(1, 40, 2, 16, 24, 1), Dtype::F32, 19);
    let base = bench.load(&case);
    let (pass, step) = (bench.pass(&base, 16), bench.step(&base));
    let backwards = |values: &[f32], shape: [usize; 4]| {
        let mut values = values.to_vec();
        values.reverse();
        let [_, t, h, p] = shape;
        let strides = [-((t * h * p) as i64), -((h * p) as i64), -(p as i64), -1];
        let stored = bench.tensor(&[values.len()], &values);
        stored.with_strides(&shape, &strides, values.len() - 1).expect("all elements, from the last")
    };
    let views = Problem {
        x: backwards(&case.x, [1, 40, 2, 16]),
        b: backwards(&case.b, [1, 40, 1, 24]),
        c: backwards(&case.c, [1, 40, 1, 24]),
        z: case.z.as_ref().map(|z| backwards(z, [1, 40, 2, 16])),
        initial_states: case.initial_states.as_ref().map(|s| backwards(s, [1, 2, 16, 24])),
        ..base
    };
    bench.same(&bench.pass(&views, 16), &pass);
    bench.same(&bench.step(&views), &step);
    let packed = Sequences::from_cu_seqlens(&bench.device, &[0, 40]).expect("one sequence");
    let views = Problem { sequences: Some(packed), ..views };
    bench.same(&bench.pass(&views, 16), &pass);
}
