//! The environment variables Kiln reads.
//!
//! They are read once, on first use, and only here: what a process does cannot change under a
//! running compile, and this file is the list of what can be set from outside.

use std::ffi::OsString;
use std::path::PathBuf;

use once_cell::sync::OnceCell;

/// The variables as they were when first asked for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Environment {
    /// `KILN_LIBLLVM`: the libLLVM 22 to use, as the path of the file or of the folder it is in.
    /// No other place is looked at then.
    pub libllvm: Option<PathBuf>,
    /// `KILN_LIBCUDA`: the CUDA driver library to use instead of the system's.
    pub libcuda: Option<PathBuf>,
    /// `KILN_PTXAS`: NVIDIA's PTX assembler, for `Inspection::sass` and tests.
    pub ptxas: Option<PathBuf>,
    /// `KILN_NVDISASM`: NVIDIA's disassembler, for `Inspection::sass`.
    pub nvdisasm: Option<PathBuf>,
    /// `KILN_CACHE`: the folder in which compiled kernels are kept, or `off`.
    pub cache: Option<PathBuf>,
    /// `KILN_CACHE_VERIFY`: whether what is found in that folder is compiled again and compared; `1` or `0`.
    pub cache_verify: bool,
    /// `XDG_CACHE_HOME`, if it is an absolute path: where programs of the user keep what they can make again.
    pub cache_home: Option<PathBuf>,
    /// `RUSTUP_HOME`: where rustup has its toolchains, in place of `~/.rustup`.
    pub rustup_home: Option<PathBuf>,
    /// `HOME`: the user's own folder.
    pub home: Option<PathBuf>,
    /// `CUDA_VISIBLE_DEVICES`, for messages only; the driver reads it itself.
    pub cuda_visible_devices: Option<String>,
}

impl Environment {
    /// The process's variables. An unset and an empty variable are the same.
    pub fn get() -> &'static Environment {
        static ENVIRONMENT: OnceCell<Environment> = OnceCell::new();
        ENVIRONMENT.get_or_init(|| Environment::from(|name| std::env::var_os(name)))
    }

    /// The variables as `read` gives them.
    fn from(read: impl Fn(&str) -> Option<OsString>) -> Environment {
        let set = |name: &str| read(name).filter(|value| !value.is_empty());
        Environment {
            libllvm: set("KILN_LIBLLVM").map(PathBuf::from),
            libcuda: set("KILN_LIBCUDA").map(PathBuf::from),
            ptxas: set("KILN_PTXAS").map(PathBuf::from),
            nvdisasm: set("KILN_NVDISASM").map(PathBuf::from),
            cache: set("KILN_CACHE").map(PathBuf::from),
            cache_verify: set("KILN_CACHE_VERIFY").is_some_and(|value| {
                let off = ["0", "off", "no", "false"];
                !off.iter().any(|off| value.eq_ignore_ascii_case(off))
            }),
            cache_home: set("XDG_CACHE_HOME")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute()),
            rustup_home: set("RUSTUP_HOME").map(PathBuf::from),
            home: set("HOME").map(PathBuf::from),
            cuda_visible_devices: read("CUDA_VISIBLE_DEVICES")
                .map(|value| value.to_string_lossy().into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_unset() {
        let unset = Environment::from(|_| Some(OsString::new()));
        assert_eq!(unset.libllvm, None);
        let set = Environment::from(|name| (name == "KILN_LIBLLVM").then(|| "/x".into()));
        assert_eq!(set.libllvm, Some(PathBuf::from("/x")));
        let verify =
            |text: &'static str| Environment::from(move |_| Some(text.into())).cache_verify;
        assert!(verify("1") && verify("on"));
        assert!(["0", "off", "OFF", "no", "false", ""].map(verify) == [false; 6]);
        let home = |text: &'static str| Environment::from(move |_| Some(text.into())).cache_home;
        assert_eq!((home("/x"), home("x")), (Some(PathBuf::from("/x")), None));
    }
}
