//! Makes one program of all programs of the guide: each a module of its own, chosen by its name.

#[allow(dead_code, reason = "links and cells are for the tests")]
mod chapters;

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use chapters::{chapters, programs};

fn main() {
    println!("cargo::rerun-if-changed=src");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let out = Path::new(&out);
    let (mut modules, mut names) = (String::new(), String::new());
    for program in chapters().iter().flat_map(programs) {
        if program.refused {
            continue;
        }
        let path = out.join(format!("{}.rs", program.name));
        fs::write(&path, &program.source).expect("cargo's folder is writable");
        let name = &program.name;
        // A program is included as it is, so that the lines of its errors are the reader's.
        let _ = write!(
            modules,
            "mod {name} {{
    include!({path:?});

    #[allow(clippy::unit_arg, reason = \"some programs return nothing\")]
    pub(crate) fn run() -> std::process::ExitCode {{
        std::process::Termination::report(main())
    }}
}}

"
        );
        let _ = writeln!(names, "    (\"{name}\", {name}::run),");
    }
    let all = format!(
        "{modules}/// The programs by their names.
const PROGRAMS: &[(&str, fn() -> std::process::ExitCode)] = &[
{names}];
"
    );
    fs::write(out.join("programs.rs"), all).expect("cargo's folder is writable");
}
