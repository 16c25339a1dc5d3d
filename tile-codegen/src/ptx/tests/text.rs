//! Texts of instructions and modules against the PTX manual.

use super::forms::*;
use crate::ptx::*;

/// The instruction lines of `forms::kernel_of` in the module's text, without the indentation.
fn body(module: &Module) -> Vec<String> {
    let text = print_module(module).text;
    let after_brace = text.lines().skip_while(|line| *line != "{").skip(1);
    let code = after_brace.skip_while(|line| line.trim_start().starts_with('.'));
    let mut lines: Vec<String> = code.skip(PRELUDE).map(|line| line.trim_start().to_string()).collect();
    assert_eq!(lines.split_off(lines.len() - 3), ["$L0:", "ret;", "}"]);
    lines
}

fn assert_texts(target: Sm, version: &str, forms: Vec<(Inst, &'static str)>) {
    let (insts, texts): (Vec<_>, Vec<_>) = forms.into_iter().unzip();
    let module = Module { target, kernels: vec![kernel_of(insts)] };
    assert_eq!(body(&module), texts);
    assert_eq!(module_version(&module).to_string(), version);
    let faults = check_module(&module).err().unwrap_or_default();
    assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn arithmetic_texts_follow_the_manual() {
    assert_texts(Sm::SM_80, "7.0", arithmetic());
}

#[test]
fn memory_texts_follow_the_manual() {
    assert_texts(Sm::SM_80, "7.0", memory());
}

#[test]
fn newer_forms_raise_version_and_target() {
    for (inst, text, (major, minor), sm) in newer() {
        assert_eq!(need(&inst), Need { version: Version { major, minor }, sm, specific: false }, "{text}");
        let kernel = kernel_of([inst]);
        assert_eq!(check_kernel(&kernel, Sm::SM_80).is_ok(), sm == 80, "{text}");
        assert!(check_kernel(&kernel, Sm::SM_90).is_ok(), "{text}");
        let module = Module { target: Sm::SM_90A, kernels: vec![kernel] };
        assert_eq!(body(&module), [text]);
        assert_eq!(module_version(&module).to_string(), "8.0");
    }
}

#[test]
fn a_module_prints_whole() {
    let mut b = FuncBuilder::new("scale", 64);
    let x = b.param("x", ParamKind::Pointer { align: 16 });
    let n = b.param("n", ParamKind::Scalar(Ty::U32));
    b.kernel_mut().min_ctas = Some(2);
    b.kernel_mut().shared = Shared::Static { bytes: 256, align: 128 };
    b.set_loc(3);
    let x = b.ld_param(Ty::U64, x);
    let n = b.ld_param(Ty::U32, n);
    let tid = b.special(SpecialReg::TidX);
    let outside = b.setp(Cmp::Ge, Ty::U32, tid, n);
    let done = b.label();
    b.bra_if(outside, done, false);
    b.set_loc(4);
    let step = b.mul_wide_s32(tid, 4);
    let addr = b.add_s64(x, step).reg().expect("x is not a literal");
    let value = b.ld(Space::Global, Ty::F32, addr);
    let twice = b.add_f32(value, value);
    b.st(Space::Global, Ty::F32, addr, &[twice.into()]);
    b.place(done);
    let module = Module { target: Sm::SM_80, kernels: vec![b.finish()] };
    let expected = "\
.version 7.0
.target sm_80
.address_size 64

.visible .entry scale(
    .param .u64 .ptr .global .align 16 p_x,
    .param .u32 p_n
)
.reqntid 64, 1, 1 .minnctapersm 2
{
    .reg .pred %p<1>;
    .reg .b32 %r<2>;
    .reg .b64 %d<3>;
    .reg .f32 %f<2>;
    .shared .align 128 .b8 smem[256];
    ld.param.u64 %d0, [p_x];
    ld.param.u32 %r0, [p_n];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p0, %r1, %r0;
    @%p0 bra $L0;
    mul.wide.s32 %d1, %r1, 4;
    add.s64 %d2, %d0, %d1;
    ld.global.f32 %f0, [%d2];
    add.rn.f32 %f1, %f0, %f0;
    st.global.f32 [%d2], %f1;
$L0:
    ret;
}
";
    let printed = print_module(&module);
    assert_eq!(printed.text, expected);
    let mut locs = vec![0; 15];
    locs.extend([3; 5]);
    locs.extend([4; 7]);
    locs.push(0);
    assert_eq!(printed.locs, locs);
    assert_eq!(printed, print_module(&module));
    assert!(check_module(&module).is_ok());
}

#[test]
fn numbers_follow_the_text_not_the_builder() {
    let mut b = FuncBuilder::new("k", 32);
    let [late, early] = b.regs::<2>(RegClass::B32);
    b.mov_to(Ty::B32, early, 7i64);
    b.mov_to(Ty::B32, late, early);
    let text = print_module(&Module { target: Sm::SM_80, kernels: vec![b.finish()] }).text;
    assert!(text.contains("    mov.b32 %r0, 7;\n    mov.b32 %r1, %r0;\n"), "{text}");
}
