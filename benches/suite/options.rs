//! What benches without nvcc's ways are started with: which programs, how often, of which size, or where code is written.

use std::path::PathBuf;

use kiln_suite::Size;

/// What was asked for.
pub struct Options {
    /// What the names of programs hold.
    pub filter: String,
    /// How often each is timed.
    pub samples: usize,
    /// Of the input, if it is not the device's.
    pub size: Option<Size>,
    /// The folder that code is written to, in place of times.
    pub write: Option<PathBuf>,
}

/// Reads the command line; panics at an option that there is not.
pub fn options() -> Options {
    let mut options = Options {
        filter: String::new(),
        samples: 31,
        size: None,
        write: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--filter" => options.filter = args.next().expect("`--filter` has a text"),
            "--samples" => {
                let number = args.next().and_then(|number| number.parse().ok());
                options.samples = number.expect("`--samples` has a number");
            }
            "--size" => {
                options.size = match args.next().as_deref() {
                    Some("small") => Some(Size::Small),
                    Some("medium") => Some(Size::Medium),
                    Some("full") => Some(Size::Full),
                    _ => panic!("`--size` has `small`, `medium` or `full`"),
                };
            }
            "--write" => {
                options.write = Some(args.next().expect("`--write` has a folder").into());
            }
            // Cargo's own.
            "--bench" => {}
            other => panic!("no option `{other}`"),
        }
    }
    options
}
