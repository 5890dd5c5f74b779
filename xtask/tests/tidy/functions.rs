//! How long functions are.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The longest a function may be, in lines, its signature and comments included.
const MAX_LINES: usize = 60;

/// What a function that is one match over a closed list says before it.
const FLAT: &str = "// flat match";

/// The functions of a file that are too long, each by its line, its name and its lines. Longer may be those that say
/// that they are one match over a closed list, arm by arm, which is no easier to read in parts.
pub(crate) fn long_functions(text: &str) -> Vec<(usize, String, usize)> {
    let Ok(file) = syn::parse_file(text) else {
        return Vec::new();
    };
    let mut finder = Finder {
        lines: text.lines().collect(),
        found: Vec::new(),
    };
    finder.visit_file(&file);
    finder.found
}

struct Finder<'t> {
    lines: Vec<&'t str>,
    found: Vec<(usize, String, usize)>,
}

impl Finder<'_> {
    fn note(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.span().start().line;
        let lines = block.span().end().line + 1 - first;
        // Attributes and documentation are between the two.
        let before = self.lines[..first - 1].iter().rev();
        let mut before = before
            .map(|line| line.trim())
            .take_while(|line| line.starts_with("//") || line.starts_with("#["));
        if lines > MAX_LINES && !before.any(|line| line == FLAT) {
            self.found.push((first, signature.ident.to_string(), lines));
        }
    }
}

/// Whether something is there for tests alone.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    let mut attributes = attributes.iter();
    attributes.any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|cfg| cfg == "test")
    })
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.note(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.note(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.note(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
