//! Matrix products on strided views: transposed operands cost nothing.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};

use super::strided::{Dims, row_major};
use super::value::TileValue;

/// `acc + a @ b` in f32, of rank 2 or, batched, 3. Operands of narrow float types are exact in f32.
pub(crate) fn mma(a: TileValue, b: TileValue, acc: TileValue) -> TileValue {
    let (a, b) = (dense_if_repeated(a), dense_if_repeated(b));
    let (elem, shape) = (acc.elem(), Dims::from(acc.shape()));
    let mut out = acc.into_dense::<f32>();
    let values: &mut Vec<f32> = std::sync::Arc::make_mut(&mut out);
    let rank = shape.len();
    let (m, n) = (shape[rank - 2], shape[rank - 1]);
    for (batch, c) in values.chunks_exact_mut(m * n).enumerate() {
        let (a, b) = (matrix(&a, batch), matrix(&b, batch));
        let mut c = ArrayViewMut2::from_shape((m, n), c).expect("the piece has m * n elements");
        general_mat_mul(1.0, &a, &b, 1.0, &mut c);
    }
    let strides = row_major(&shape);
    TileValue::from_arc(elem, shape, strides, out)
}

/// Views of the product routine do not repeat elements.
fn dense_if_repeated(x: TileValue) -> TileValue {
    let repeated = x.shape().iter().zip(x.strides()).any(|(&size, &stride)| size > 1 && stride == 0);
    if !repeated {
        return x;
    }
    let data = x.to_vec::<f32>().expect("the type rule asks for floats");
    TileValue::new(x.elem(), x.shape(), data)
}

fn matrix(x: &TileValue, batch: usize) -> ArrayView2<'_, f32> {
    let (data, strides) = x.expect::<f32>();
    let row = x.shape().len() - 2;
    let start = if row == 1 { batch * strides[0] } else { 0 };
    let shape = (x.shape()[row], x.shape()[row + 1]);
    let stride = |axis: usize| if x.shape()[axis] == 1 { 1 } else { strides[axis] };
    ArrayView2::from_shape(shape.strides((stride(row), stride(row + 1))), &data[start..])
        .expect("the strides of a tile stay within its elements")
}
