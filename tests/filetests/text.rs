//! Files of kind `text`: comments aside, exactly what printing them gives. They verify, and survive
//! printing without loss.

use kiln::core::definition::{Body, Fingerprint};
use kiln::core::ir::{self, Module, PrintOptions};
use suite::Outcome;
use suite::files::File;

pub(super) fn check(file: &File) -> Outcome {
    let module = file_module(&file.text)?;
    let comments = file.text.lines().take_while(|line| line.starts_with(';'));
    let comments: String = comments.map(|line| format!("{line}\n")).collect();
    let printed = module.to_string();
    file.settle(&(comments + &printed))?;
    let again = file_module(&printed)?;
    same(&again.to_string(), &printed, "printed and read")?;
    if fingerprint(again) != fingerprint(module.clone()) {
        return Err("printed and read, it has another fingerprint".into());
    }
    ir::verify(&module)?;

    let plain = ir::print(&module, PrintOptions { locations: false });
    if plain.contains('!') {
        return Err(format!("there are locations in\n{plain}").into());
    }
    same(
        &file_module(&plain)?.to_string(),
        &plain,
        "without locations",
    )
}

/// The module of a text that says itself where it comes from.
fn file_module(text: &str) -> Result<Module, ir::ParseError> {
    ir::parse(text, &kiln::stdlib::find)
}

/// What cache keys say of a definition with this content.
fn fingerprint(module: Module) -> Option<Fingerprint> {
    let first = module.functions.iter().next()?.0;
    Some(Body::new(module, first, Vec::new()).fingerprint)
}

fn same(found: &str, wanted: &str, what: &str) -> Outcome {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{what}, it is\n{found}\nnot\n{wanted}").into()),
    }
}
