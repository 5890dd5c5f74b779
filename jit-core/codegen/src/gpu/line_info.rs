//! Source lines in PTX without the rest of debug information.
//!
//! LLVM's C interface offers line tables (`LineTablesOnly`), with which NVPTX writes `.loc` and
//! `.file` lines, but also DWARF sections and the `debug` target option. That option makes ptxas
//! give up optimizing (a small kernel grew from 1408 to 3712 bytes of SASS on sm_90). The kind
//! that writes directives alone, `DebugDirectivesOnly`, exists in LLVM's IR and not in its C
//! interface, so what is too much is taken out of the text; the SASS is then the same as without
//! debug information.

/// `ptx` without the `debug` target option and the `.debug_*` sections; `.loc` and `.file` stay.
/// Text without debug information is returned as it is. See PTX ISA 11.1.2 (`.target`) and 11.5
/// (debugging directives).
pub(crate) fn keep_directives(ptx: String) -> String {
    if !ptx.lines().any(is_debug_target) {
        return ptx;
    }
    let mut kept = String::with_capacity(ptx.len());
    let mut in_section = false;
    for line in ptx.lines() {
        in_section |= line.trim_start().starts_with(".section\t.debug_");
        if in_section {
            in_section = !line.trim_end().ends_with('}');
            continue;
        }
        let line = if is_debug_target(line) {
            line.trim_end_matches(", debug")
        } else {
            line
        };
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

fn is_debug_target(line: &str) -> bool {
    line.starts_with(".target ") && line.ends_with(", debug")
}

#[cfg(test)]
mod tests {
    use super::keep_directives;

    #[test]
    fn sections_and_the_option_go_and_directives_stay() {
        let ptx = ".version 8.3\n.target sm_90, debug\n{\n\t.loc\t1 11 3\n}\n\t.file\t1 \"/src/k.rs\"\n\
                   \t.section\t.debug_abbrev\n\t{\n.b8 1\n\t}\n\t.section\t.debug_macinfo\t{\t}\n// end\n";
        let kept =
            ".version 8.3\n.target sm_90\n{\n\t.loc\t1 11 3\n}\n\t.file\t1 \"/src/k.rs\"\n// end\n";
        assert_eq!(keep_directives(ptx.to_owned()), kept);
        assert_eq!(keep_directives(kept.to_owned()), kept);
    }
}
