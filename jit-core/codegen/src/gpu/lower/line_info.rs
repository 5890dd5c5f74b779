//! Source lines: which line of the program each LLVM instruction comes from.
//!
//! A compile unit and a subprogram for each function, and a location on each instruction; no types
//! and no variables. PTX shows them as `.loc` and `.file` (PTX ISA, "Debugging Directives").

use std::cell::RefCell;
use std::collections::HashMap;

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::debug_info::{
    AsDIScope as _, DIFile, DIFlags, DIFlagsConstants as _, DILocation, DIScope, DISubprogram,
    DWARFEmissionKind, DWARFSourceLanguage, DebugInfoBuilder, debug_metadata_version,
};
use inkwell::module::{FlagBehavior, Module as LlvmModule};
use inkwell::values::FunctionValue;

use kiln_ir::{Entity as _, FileId, FuncId, Location, Module};

use super::names;

/// The debug information of a module being built.
pub(super) struct LineInfo<'ctx> {
    builder: DebugInfoBuilder<'ctx>,
    files: Vec<DIFile<'ctx>>,
    /// The module's, and behind them those that are there only in place of calls.
    functions: Vec<(DISubprogram<'ctx>, FileId)>,
    /// Calls in place of which bodies stand: the number of the function called, and where.
    inlined: Vec<(usize, Location)>,
    /// Scopes for instructions of another file than their function's.
    scopes: RefCell<HashMap<(usize, FileId), DIScope<'ctx>>>,
}

impl<'ctx> LineInfo<'ctx> {
    pub(super) fn new(llvm: &LlvmModule<'ctx>, module: &Module) -> LineInfo<'ctx> {
        let version = llvm.get_context().i32_type();
        let version = version.const_int(debug_metadata_version().into(), false);
        llvm.add_basic_value_flag("Debug Info Version", FlagBehavior::Warning, version);
        let (builder, unit) = llvm.create_debug_info_builder(
            true,
            DWARFSourceLanguage::Rust,
            &names::sanitize(&module.name),
            "",
            "kiln",
            true,
            "",
            0,
            "",
            DWARFEmissionKind::LineTablesOnly,
            0,
            false,
            false,
            "",
            "",
        );
        let files: Vec<_> = module
            .files
            .values()
            .map(|path| {
                let (folder, name) = split_path(path);
                builder.create_file(&name, &folder)
            })
            .collect();
        let mut lines = LineInfo {
            builder,
            files,
            functions: Vec::new(),
            inlined: Vec::new(),
            scopes: RefCell::default(),
        };
        lines.declare(module, unit.as_debug_info_scope(), unit.get_file());
        lines
    }

    /// Makes the functions known, and the calls in place of which bodies stand.
    fn declare(&mut self, module: &Module, unit: DIScope<'ctx>, file: DIFile<'ctx>) {
        let ty = self
            .builder
            .create_subroutine_type(file, None, &[], DIFlags::PUBLIC);
        let declare = |name: &str, at: Location| {
            let file = file_of(&self.files, at.file);
            let subprogram = self.builder.create_function(
                unit,
                &names::sanitize(name),
                None,
                self.files[file.index()],
                at.line,
                ty,
                true,
                true,
                at.line,
                DIFlags::PUBLIC,
                true,
            );
            (subprogram, file)
        };
        let (mut functions, mut numbers) = (Vec::new(), HashMap::new());
        for function in module.functions.values() {
            numbers.insert(&*function.name, functions.len());
            functions.push(declare(&function.name, function.location));
        }
        let mut inlined = Vec::new();
        for call in module.inlined.values() {
            let number = numbers.entry(&*call.function).or_insert_with(|| {
                functions.push(declare(&call.function, Location::unknown()));
                functions.len() - 1
            });
            inlined.push((*number, call.at));
        }
        (self.functions, self.inlined) = (functions, inlined);
    }

    /// Says which function of the program an LLVM function is.
    pub(super) fn attach(&self, id: FuncId, function: FunctionValue<'ctx>) {
        if let Some((subprogram, _)) = self.functions.get(id.index()) {
            function.set_subprogram(*subprogram);
        }
    }

    /// Makes `builder` attribute what it builds to a location; an unknown one is line 0.
    pub(super) fn locate(
        &self,
        context: &'ctx Context,
        builder: &Builder<'ctx>,
        id: FuncId,
        location: Location,
    ) {
        if let Some(at) = self.place(context, id.index(), location) {
            builder.set_current_debug_location(at);
        }
    }

    /// A location in a function, by its number.
    fn place(
        &self,
        context: &'ctx Context,
        function: usize,
        location: Location,
    ) -> Option<DILocation<'ctx>> {
        let call = location.inlined.map(|call| self.inlined.get(call.index()));
        let (own, call) = match call {
            None => (function, None),
            Some(call) => {
                let &(own, at) = call?;
                (own, Some(self.place(context, function, at)?))
            }
        };
        let &(subprogram, own_file) = self.functions.get(own)?;
        let file = file_of(&self.files, location.file);
        let scope = if file == own_file || !location.is_known() {
            subprogram.as_debug_info_scope()
        } else {
            *self
                .scopes
                .borrow_mut()
                .entry((own, file))
                .or_insert_with(|| {
                    self.builder
                        .create_lexical_block(
                            subprogram.as_debug_info_scope(),
                            self.files[file.index()],
                            location.line,
                            location.column,
                        )
                        .as_debug_info_scope()
                })
        };
        let (line, column) = (location.line, location.column);
        Some(
            self.builder
                .create_debug_location(context, line, column, scope, call),
        )
    }

    /// To be called when everything is built.
    pub(super) fn finish(&self) {
        self.builder.finalize();
    }
}

/// The file, or file 0 (which is always there) for one of another module.
fn file_of(files: &[DIFile<'_>], file: FileId) -> FileId {
    if file.index() < files.len() {
        file
    } else {
        FileId::from_index(0)
    }
}

/// Folder and name of a path, without what a string of LLVM or PTX could not hold.
fn split_path(path: &str) -> (String, String) {
    let clean: String = path
        .chars()
        .map(|c| if c.is_control() || c == '"' { '_' } else { c })
        .collect();
    match clean.rsplit_once('/') {
        Some((folder, name)) => (folder.to_owned(), name.to_owned()),
        None => (String::new(), clean),
    }
}
