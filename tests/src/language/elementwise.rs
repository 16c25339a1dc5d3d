//! Elementwise operations: every one in every element type that has it, and broadcasting.

use tile_runtime::codegen::dsl::Bits;
use tile_runtime::prelude::*;

use super::{How, exact, one, plain, two};
use crate::held::Held;
use crate::input::Fill;
use crate::lab::Cases;
use crate::tolerance::Tolerance;

const FLOAT_UNARY: [&str; 13] = [
    "neg", "abs", "floor", "ceil", "sqrt", "rsqrt", "exp", "exp2", "log", "log2", "sigmoid", "softplus",
    "tanh",
];
const INT_UNARY: [&str; 3] = ["neg", "abs", "not"];
const NUMBER_BINARY: [&str; 6] = ["add", "sub", "mul", "div", "minimum", "maximum"];
const INT_BINARY: [&str; 6] = ["rem", "and", "or", "xor", "shl", "shr"];
const COMPARE: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

fn float_unary<T: Float>(op: &str, t: Tile<T>) -> Tile<T> {
    match op {
        "neg" => -t,
        "abs" => abs(t),
        "floor" => floor(t),
        "ceil" => ceil(t),
        "sqrt" => sqrt(t),
        "rsqrt" => rsqrt(t),
        "exp" => exp(t),
        "exp2" => exp2(t),
        "log" => log(t),
        "log2" => log2(t),
        "sigmoid" => sigmoid(t),
        "softplus" => softplus(t),
        "tanh" => tanh(t),
        other => panic!("no operation {other}"),
    }
}

fn number_binary<T: Number>(op: &str, a: Tile<T>, b: Tile<T>) -> Tile<T> {
    match op {
        "add" => a + b,
        "sub" => a - b,
        "mul" => a * b,
        "div" => a / b,
        "minimum" => minimum(a, b),
        "maximum" => maximum(a, b),
        "minimum_nan" => minimum_nan(a, b),
        "maximum_nan" => maximum_nan(a, b),
        other => panic!("no operation {other}"),
    }
}

#[tile_kernel]
fn unary_of_floats<T: Float>(x: Tensor<T, 2>, out: TensorMut<T, 2>, op: Const<usize>) {
    let at = (bid(1), bid(0));
    let t = load(x, at, (16, 32));
    store(out, at, float_unary(FLOAT_UNARY[op], t));
}

#[tile_kernel]
fn unary_of_ints<T: Int + Bits>(x: Tensor<T, 2>, out: TensorMut<T, 2>, op: Const<usize>) {
    let at = (bid(1), bid(0));
    let t = load(x, at, (16, 32));
    store(
        out,
        at,
        if op == 0 {
            -t
        } else if op == 1 {
            abs(t)
        } else {
            !t
        },
    );
}

#[tile_kernel]
fn binary_of_numbers<T: Number>(x: Tensor<T, 2>, y: Tensor<T, 2>, out: TensorMut<T, 2>, op: Const<usize>) {
    let at = (bid(1), bid(0));
    let (a, b) = (load(x, at, (16, 32)), load(y, at, (16, 32)));
    store(out, at, number_binary(NUMBER_BINARY[op], a, b));
}

#[tile_kernel]
fn binary_of_ints<T: Int + Bits>(x: Tensor<T, 2>, y: Tensor<T, 2>, out: TensorMut<T, 2>, op: Const<usize>) {
    let at = (bid(1), bid(0));
    let (a, b) = (load(x, at, (16, 32)), load(y, at, (16, 32)));
    let result = match INT_BINARY[op] {
        "rem" => a % b,
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "shl" => a << b,
        _ => a >> b,
    };
    store(out, at, result);
}

#[tile_kernel]
fn compared<T: Number>(x: Tensor<T, 2>, y: Tensor<T, 2>, out: TensorMut<bool, 2>, op: Const<usize>) {
    let at = (bid(1), bid(0));
    let (a, b) = (load(x, at, (16, 32)), load(y, at, (16, 32)));
    let result = match COMPARE[op] {
        "eq" => a == b,
        "ne" => a != b,
        "lt" => a < b,
        "le" => a <= b,
        "gt" => a > b,
        _ => a >= b,
    };
    store(out, at, result);
}

/// Not commutative in anything, with a row, a column, a scalar and a literal broadcast.
#[tile_kernel]
fn broadcasts<T: Number>(x: Tensor<T, 2>, y: Tensor<T, 2>, out: TensorMut<T, 2>) {
    let at = (bid(1), bid(0));
    let row = load(x, (0, bid(0)), (1, 32));
    let column = load(x, (bid(1), 0), (16, 1));
    let t = load(y, at, (16, 32));
    let corner = load_scalar(x, (1, 2));
    store(out, at, (row - column) * corner - where_(row > column, t, column));
}

#[tile_kernel]
fn logic(x: Tensor<bool, 2>, y: Tensor<bool, 2>, out: TensorMut<bool, 2>, op: Const<usize>) {
    let at = (bid(1), bid(0));
    let (a, b) = (load(x, at, (16, 32)), load(y, at, (16, 32)));
    let result = match op {
        0 => a & b,
        1 => a | b,
        2 => a ^ b,
        3 => !a,
        4 => a && !b,
        5 => a || !b,
        6 => a == b,
        _ => where_(a, b, !b),
    };
    store(out, at, result);
}

/// Values that the rules about NaN, infinity, zeros and denormals are about.
#[tile_kernel]
fn special<T: Float>(x: Tensor<T, 2>, y: Tensor<T, 2>, out: TensorMut<T, 2>, op: Const<usize>) {
    let at = (bid(1), bid(0));
    // 1/0, -1/0 and 0/0 from whole numbers.
    let (a, b) = (load(x, at, (16, 32)), load(y, at, (16, 32)));
    let (a, b) = ((a / b).cast::<T>(), (b / (a - b)).cast::<T>());
    let result = match op {
        0 => maximum(a, b),
        1 => minimum(a, b),
        2 => maximum_nan(a, b),
        3 => minimum_nan(a, b),
        4 => where_(a != b, a, b),
        5 => where_(a < b, a, b),
        6 => where_(a == a, a, 1.0) + b,
        // Quotients show the sign of zero.
        8 => 1.0 / minimum(a, b * 0.0),
        9 => 1.0 / maximum(b * 0.0, a),
        10 => 1.0 / tanh(where_(a == 0.0, a, 1.0)),
        _ => exp2(a * 16.0),
    };
    store(out, at, where_(result == result, result, 77.0));
}

const SHAPE: [usize; 2] = [35, 70];
const GRID: [usize; 3] = [3, 3, 1];

fn floats<T: Held + Float>(cases: &mut Cases) {
    for (op, name) in FLOAT_UNARY.into_iter().enumerate() {
        // Positive where the function needs it, and wide enough to meet the ends of exp in every type.
        let fills: &[Fill] = match name {
            "sqrt" | "rsqrt" | "log" | "log2" => &[Fill::Between(0.015_625, 4.0), Fill::Between(1.0, 200.0)],
            "exp" | "exp2" => &[Fill::Between(-8.0, 8.0), Fill::Between(-80.0, 80.0)],
            _ => &[Fill::Between(-8.0, 8.0), Fill::Between(-40.0, 40.0)],
        };
        for &fill in fills {
            let tolerance = Tolerance::function(name, T::ROUNDING);
            // Denormal halves are whole multiples of 2^-24.
            let tolerance = match tolerance {
                Tolerance::Within { relative, .. } if T::NAME == "f16" => {
                    Tolerance::Within { relative, absolute: 6e-8 }
                }
                other => other,
            };
            let how = How { name: format!("{name} {} {fill:?}", T::NAME), tolerance, tile: 512, grid: GRID };
            one::<T, T>(cases, how, plain(&SHAPE, fill), plain(&SHAPE, Fill::Wide), move |x, out| {
                unary_of_floats(x, out, op)
            });
        }
    }
    for op in 0..11 {
        let mut how = exact(format!("special values {} {op}", T::NAME), 512, GRID);
        how.tolerance =
            Tolerance::function(if op == 7 || op == 10 { "softplus" } else { "div" }, T::ROUNDING);
        let inputs = [plain(&SHAPE, Fill::Small), plain(&SHAPE, Fill::Small)];
        // Kept to types whose quotients of small numbers do not double-round.
        if T::NAME == "f32" || op < 4 {
            two::<T, T>(cases, how, inputs, plain(&SHAPE, Fill::Wide), move |x, y, out| {
                special(x, y, out, op)
            });
        }
    }
}

fn numbers<T: Held + Number>(cases: &mut Cases) {
    for (op, name) in NUMBER_BINARY.into_iter().enumerate() {
        for fill in [Fill::Wide, Fill::Between(0.5, 9.0)] {
            if matches!(fill, Fill::Between(..)) && T::ROUNDING == 0.0 {
                continue;
            }
            let mut how = exact(format!("{name} {} {fill:?}", T::NAME), 512, GRID);
            if T::ROUNDING > 0.0 && name == "div" {
                how.tolerance = Tolerance::function(name, T::ROUNDING);
            }
            let inputs = [plain(&SHAPE, fill), plain(&SHAPE, fill)];
            two::<T, T>(cases, how, inputs, plain(&SHAPE, fill), move |x, y, out| {
                binary_of_numbers(x, y, out, op)
            });
        }
    }
    for (op, name) in COMPARE.into_iter().enumerate() {
        let how = exact(format!("{name} {}", T::NAME), 512, GRID);
        let inputs = [plain(&SHAPE, Fill::Small), plain(&SHAPE, Fill::Small)];
        two::<T, bool>(cases, how, inputs, plain(&SHAPE, Fill::Wide), move |x, y, out| {
            compared(x, y, out, op)
        });
    }
    let how = exact(format!("broadcasts {}", T::NAME), 512, GRID);
    let inputs = [plain(&SHAPE, Fill::Small), plain(&SHAPE, Fill::Small)];
    two::<T, T>(cases, how, inputs, plain(&SHAPE, Fill::Wide), |x, y, out| broadcasts(x, y, out));
}

fn ints<T: Held + Int + Bits>(cases: &mut Cases) {
    for (op, name) in INT_UNARY.into_iter().enumerate() {
        let how = exact(format!("{name} {}", T::NAME), 512, GRID);
        one::<T, T>(cases, how, plain(&SHAPE, Fill::Wide), plain(&SHAPE, Fill::Wide), move |x, out| {
            unary_of_ints(x, out, op)
        });
    }
    for (op, name) in INT_BINARY.into_iter().enumerate() {
        // The wide numbers hold amounts beyond the width, negative ones and zero divisors.
        for fill in [Fill::Wide, Fill::Small] {
            let how = exact(format!("{name} {} {fill:?}", T::NAME), 512, GRID);
            let inputs = [plain(&SHAPE, fill), plain(&SHAPE, fill)];
            two::<T, T>(cases, how, inputs, plain(&SHAPE, fill), move |x, y, out| {
                binary_of_ints(x, y, out, op)
            });
        }
    }
}

/// Every elementwise operation in every element type that has it.
pub fn elementwise() -> Cases {
    let mut cases = Cases::default();
    floats::<f32>(&mut cases);
    floats::<f16>(&mut cases);
    floats::<bf16>(&mut cases);
    numbers::<f32>(&mut cases);
    numbers::<f16>(&mut cases);
    numbers::<bf16>(&mut cases);
    numbers::<i32>(&mut cases);
    numbers::<i64>(&mut cases);
    numbers::<u32>(&mut cases);
    ints::<i32>(&mut cases);
    ints::<i64>(&mut cases);
    ints::<u32>(&mut cases);
    for op in 0..8 {
        let inputs = [plain(&SHAPE, Fill::Wide), plain(&SHAPE, Fill::Wide)];
        let how = exact(format!("logic {op}"), 512, GRID);
        two::<bool, bool>(&mut cases, how, inputs, plain(&SHAPE, Fill::Wide), move |x, y, out| {
            logic(x, y, out, op)
        });
    }
    cases
}
