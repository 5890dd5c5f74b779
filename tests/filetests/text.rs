//! Files of kind `text`: comments aside, exactly what printing them gives. They verify, survive
//! printing without loss, and are built again by a cursor, which knows what each operation gives.

use kiln::core::definition::{Body, Fingerprint};
use kiln::core::ir::{self, Cursor, Module, PrintOptions, ResultType, Type};
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
    same(
        &rebuilt(module.clone()).to_string(),
        &printed,
        "built again",
    )?;

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

/// The module with each operation built anew in its place: the types of results where operands leave a choice,
/// and nothing of them elsewhere.
fn rebuilt(mut module: Module) -> Module {
    module.rewrite_each(|at: &mut Cursor<'_>| {
        let data = at.data().clone();
        let decided = at.function().result_type(at.module(), &data);
        let chosen = match (decided, at.result()) {
            (Some(ResultType::Chosen), Some(result)) => at.type_of(result),
            _ => Type::UNIT,
        };
        at.replace().inst(data, chosen);
    });
    module
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
