//! Pipelines in the notation of LLVM's `opt -passes`: `function(sroa<modify-cfg>,loop(indvars,loop-deletion))`.

/// The names of the passes of a pipeline, without what other passes stand in.
pub fn names(pipeline: &str) -> Vec<String> {
    let mut names = Vec::new();
    for item in items(pipeline) {
        match inner(item) {
            Some((_, list)) => names.extend(self::names(list)),
            None => names.push(name(item).to_owned()),
        }
    }
    names
}

/// A pipeline without some passes, and without what nothing stands in any more.
pub fn without(pipeline: &str, left_out: &[String]) -> String {
    let kept = items(pipeline)
        .into_iter()
        .filter_map(|item| match inner(item) {
            Some((start, list)) => {
                let list = without(list, left_out);
                (!list.is_empty()).then(|| format!("{start}({list})"))
            }
            None => {
                let is_left_out = left_out.iter().any(|pass| pass == name(item));
                (!is_left_out).then(|| item.to_owned())
            }
        });
    kept.collect::<Vec<_>>().join(",")
}

/// What commas separate outside of parentheses.
fn items(pipeline: &str) -> Vec<&str> {
    let (mut items, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in pipeline.char_indices() {
        match letter {
            '(' | '<' => depth += 1,
            ')' | '>' => depth -= 1,
            ',' if depth == 0 => {
                items.push(pipeline[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(pipeline[start..].trim());
    items.retain(|item| !item.is_empty());
    items
}

/// What stands before the parentheses of an item, and in them.
fn inner(item: &str) -> Option<(&str, &str)> {
    item.strip_suffix(')')?.split_once('(')
}

/// The name of a pass without its parameters.
fn name(item: &str) -> &str {
    item.split_once('<').map_or(item, |(name, _)| name)
}
