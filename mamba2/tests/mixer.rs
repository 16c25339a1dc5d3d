//! The weights of a mixer in a file, and arguments that do not fit it. What it computes is tested on every device elsewhere.

use mamba2::{Mixer, MixerOptions, MixerWeights, case::Dtype, mixer::Sizes};
use tile_runtime::{Device, DeviceTensor};

const SIZES: Sizes = Sizes { model: 48, heads: 4, head_dim: 24, groups: 2, state: 20, width: 4 };

fn options() -> MixerOptions {
    MixerOptions { groups: SIZES.groups, chunk: Some(16), ..MixerOptions::default() }
}

#[test]
fn weights_survive_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layer.safetensors");
    for dtype in [Dtype::F32, Dtype::BF16] {
        let weights = MixerWeights::random(SIZES, dtype, 5);
        weights.write(&path, "backbone.layers.0.mixer.", dtype).unwrap();
        assert_eq!(MixerWeights::read(&path, "backbone.layers.0.mixer.", &options()).unwrap(), weights);
    }
    let error = |prefix: &str, groups: usize| {
        MixerWeights::read(&path, prefix, &MixerOptions { groups, ..options() }).unwrap_err().to_string()
    };
    assert!(error("layers.0.", 2).contains("no tensor called 'layers.0.in_proj.weight'"));
    assert!(error("backbone.layers.0.mixer.", 3).contains("is the number of groups 3?"));
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let weights = MixerWeights::random(SIZES, Dtype::F32, 3);
    let mixer = Mixer::<f32>::new(&Device::cpu(), &weights, options()).unwrap();
    let error = |result: mamba2::Result<()>| result.unwrap_err().to_string();
    let u = DeviceTensor::<f32>::zeros(&Device::cpu(), &[1, 4, 48]).unwrap();
    let narrow = u.slice(2, 0..40).unwrap();
    let text = error(mixer.forward(&narrow, None, None, None).map(drop));
    assert!(text.contains("`u` has shape [1, 4, 40]; expected [batch, tokens, 48]"), "{text}");
    let mut two = mixer.new_state(2).unwrap();
    let text = error(mixer.forward(&u, Some(&two), None, None).map(drop));
    assert!(text.contains("`state.conv` has shape [2, 176, 4]; expected [1, 176, 4]"), "{text}");
    let text = error(mixer.step(&u, &mut two, None, None).map(drop));
    assert!(text.contains("state.conv"), "{text}");
    // Before anything runs, so that no state is left half updated.
    let refused = |weights: &MixerWeights, options: MixerOptions| {
        error(Mixer::<f32>::new(&Device::cpu(), weights, options).map(drop))
    };
    let text = refused(&weights, MixerOptions { dt_limit: (1.0, 0.5), ..options() });
    assert!(text.contains("`dt_limit` is (1, 0.5)"), "{text}");
    for epsilon in [f32::NAN, -1.0] {
        let text = refused(&weights, MixerOptions { epsilon, ..options() });
        assert!(text.contains("`epsilon` is"), "{text}");
    }
    let text = refused(&weights, MixerOptions { chunk: Some(48), ..options() });
    assert!(text.contains("`chunk` is 48"), "{text}");
    for (sizes, part) in [
        (Sizes { groups: 0, ..SIZES }, "0 groups"),
        (Sizes { groups: 3, ..SIZES }, "3 groups"),
        (Sizes { head_dim: 257, ..SIZES }, "head_dim is 257, expected 1 to 256"),
        (Sizes { state: 0, ..SIZES }, "state is 0"),
        (Sizes { width: 17, ..SIZES }, "width is 17, expected 1 to 16"),
        (Sizes { model: 0, ..SIZES }, "model is 0, expected at least 1"),
    ] {
        let text = refused(
            &MixerWeights { sizes, ..weights.clone() },
            MixerOptions { groups: sizes.groups, ..options() },
        );
        assert!(text.contains(part), "{text}");
    }
    let text = error(Mixer::<f32>::new(&Device::cpu(), &weights, MixerOptions::default()).map(drop));
    assert!(text.contains("`groups` is 1; expected 2"), "{text}");
}
