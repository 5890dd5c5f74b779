//! The function without directives.

use proc_macro2::TokenStream;
use quote::quote;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, Local, Stmt};

use crate::clauses::is_directive;
use crate::data;

/// Takes the directives out of a block.
pub(crate) fn without_directives(block: &Block) -> Block {
    let mut block = block.clone();
    Strip.visit_block_mut(&mut block);
    block
}

/// Whether a statement is the directive `barrier!();`.
pub(crate) fn is_barrier(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Macro(held) if held.mac.path.is_ident("barrier"))
}

/// Whether a statement is a directive about what is on the device.
pub(crate) fn is_global(statement: &Stmt) -> bool {
    matches!(statement, Stmt::Macro(held) if held.mac.path.is_ident("global"))
}

/// The statements in the place of one; what is wrong with it is said where it becomes launches.
fn without_directive(statement: Stmt) -> Vec<Stmt> {
    let written = if is_barrier(&statement) || data::is_constant(&statement) {
        Some(TokenStream::new())
    } else if is_global(&statement) {
        data::sequential(&statement).ok()
    } else if data::is_shape(&statement) {
        data::shape(&statement)
            .ok()
            .map(|shape| data::let_shape(&shape))
    } else {
        return vec![statement];
    };
    let block = written.and_then(|written| syn::parse2::<Block>(quote!({ #written })).ok());
    block.map_or_else(Vec::new, |block| block.stmts)
}

struct Strip;

impl VisitMut for Strip {
    fn visit_block_mut(&mut self, block: &mut Block) {
        let statements = std::mem::take(&mut block.stmts);
        block.stmts = statements.into_iter().flat_map(without_directive).collect();
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        local.attrs.retain(|attribute| !is_directive(attribute));
        visit_mut::visit_local_mut(self, local);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        if let Some(attributes) = attributes_of(expr) {
            attributes.retain(|attribute| !is_directive(attribute));
        }
        visit_mut::visit_expr_mut(self, expr);
    }
}

/// The attributes of a block, a loop or an `if`. Of other expressions the compiler says that an attribute is none.
pub(crate) fn attributes_of(expr: &mut Expr) -> Option<&mut Vec<Attribute>> {
    Some(match expr {
        Expr::Block(held) => &mut held.attrs,
        Expr::ForLoop(held) => &mut held.attrs,
        Expr::While(held) => &mut held.attrs,
        Expr::Loop(held) => &mut held.attrs,
        Expr::If(held) => &mut held.attrs,
        _ => return None,
    })
}
