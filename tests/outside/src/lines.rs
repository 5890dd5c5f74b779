//! How many lines of code an extension may have: each file up to its tests, without what it imports, blank
//! lines and comments, as rustfmt lays it out.

/// File and lines.
const MOST: &[(&str, usize)] = &[
    ("approximate", 50),
    ("cache_hint", 8),
    ("counters", 30),
    ("expression", 101),
    ("fast_math", 32),
    ("fast_tanh", 28),
    ("library_error", 36),
    ("narrow", 60),
    ("permute", 15),
    ("read_only", 20),
    ("small_blocks", 8),
    ("tensor", 20),
    ("timer", 17),
];

/// The lines of code of a file before its tests.
fn lines(text: &str) -> usize {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut importing = false;
    let mut count = 0;
    for line in code.lines().map(str::trim) {
        let imports = importing || line.starts_with("use ") || line.starts_with("pub use ");
        importing = imports && !line.ends_with(';');
        if !imports && !line.is_empty() && !line.starts_with("//") {
            count += 1;
        }
    }
    count
}

#[test]
fn extensions_are_short() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut long = Vec::new();
    for (name, most) in MOST {
        let file = folder.join(name).with_extension("rs");
        let text = std::fs::read_to_string(&file).expect(name);
        let has = lines(&text);
        println!("{name}: {has} of {most}");
        if has > *most {
            long.push(format!("{name}: {has} lines, at most {most}"));
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn every_extension_has_a_limit() {
    let listed = |name: &str| MOST.iter().any(|(file, _)| *file == name);
    let library = include_str!("lib.rs");
    let extensions = library.lines().filter_map(|line| {
        let name = line.strip_prefix("pub mod ")?;
        name.strip_suffix(';')
    });
    let missing: Vec<&str> = extensions.filter(|name| !listed(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn imports_comments_and_tests_do_not_count() {
    let text = "//! About.\nuse a::{\n    b,\n};\n\nfn f() {\n    // Why.\n    g()\n}\n#[cfg(test)]\nmod tests {}\n";
    assert_eq!(lines(text), 3);
}
