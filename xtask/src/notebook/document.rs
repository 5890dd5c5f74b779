//! A notebook as a file: its code cells, and what each is to print.
//!
//! The format is Jupyter's, nbformat 4. What is expected of a cell is what Jupyter keeps as its
//! outputs: text on standard output and the value of the last expression, text on standard error, and
//! the message of a compile error. The last two are for cells that show an error, which carry
//! Jupyter's tag `raises-exception`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::session::plain;
use crate::error::{Error, Result};

/// The tag of a cell that shows an error.
const FAILS: &str = "raises-exception";

/// A notebook.
#[derive(Debug)]
pub(crate) struct Document {
    path: PathBuf,
    json: Value,
}

/// A code cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Its place among all cells of the notebook, from 0.
    pub(crate) index: usize,
    /// Its text.
    pub(crate) code: String,
    /// Whether it is there to show an error.
    pub(crate) fails: bool,
    /// What it prints.
    pub(crate) outputs: Outputs,
}

/// What a cell prints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outputs {
    /// What is on standard output, and the value of the last expression.
    pub(crate) out: String,
    /// What is on standard error: panics, errors that `?` passes on.
    pub(crate) err: String,
    /// What the compiler says if it refuses the cell, as Jupyter shows it.
    pub(crate) refused: Option<String>,
}

impl Document {
    /// Reads a notebook.
    pub(crate) fn read(path: &Path) -> Result<Document> {
        let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
        let json: Value = serde_json::from_str(&text).map_err(|error| Error::Notebook {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        let document = Document {
            path: path.to_owned(),
            json,
        };
        match document.json["nbformat"].as_u64() {
            Some(4) => Ok(document),
            _ => Err(document.error("its `nbformat` is not 4")),
        }
    }

    /// Its code cells.
    ///
    /// # Errors
    /// Outputs that no cell that runs as it should can have.
    pub(crate) fn cells(&self) -> Result<Vec<Cell>> {
        let all = self.json["cells"].as_array();
        let all = all.ok_or_else(|| self.error("it has no `cells`"))?;
        let mut cells = Vec::new();
        for (index, cell) in all.iter().enumerate() {
            let code = text(&cell["source"]);
            if cell["cell_type"] != "code" || code.trim().is_empty() {
                continue;
            }
            let tags = cell["metadata"]["tags"].as_array();
            let fails = tags.is_some_and(|tags| tags.iter().any(|tag| tag == FAILS));
            let outputs = Outputs::of(&cell["outputs"])
                .ok_or_else(|| self.error(&format!("cell {index}: an output has no text")))?;
            if fails == (outputs.err.is_empty() && outputs.refused.is_none()) {
                let message = match fails {
                    true => "it is tagged `raises-exception` and its outputs show no error",
                    false => "its outputs show an error and it is not tagged `raises-exception`",
                };
                return Err(self.error(&format!("cell {index}: {message}")));
            }
            cells.push(Cell {
                index,
                code,
                fails,
                outputs,
            });
        }
        Ok(cells)
    }

    /// Puts what a cell printed in the place of its outputs.
    pub(crate) fn set_outputs(&mut self, cell: usize, outputs: &Outputs) {
        let mut list = Vec::new();
        for (name, text) in [("stdout", &outputs.out), ("stderr", &outputs.err)] {
            if !text.is_empty() {
                list.push(json!({"name": name, "output_type": "stream", "text": lines(text)}));
            }
        }
        if let Some(message) = &outputs.refused {
            list.push(json!({
                "ename": "Error", "evalue": message, "output_type": "error", "traceback": [message],
            }));
        }
        self.json["cells"][cell]["outputs"] = Value::Array(list);
    }

    /// Writes the notebook as Jupyter writes notebooks.
    pub(crate) fn write(&self) -> Result<()> {
        let written = serde_json::to_string_pretty(&self.json);
        let written = written.map_err(|error| self.error(&error.to_string()))?;
        // serde_json indents by two, Jupyter by one.
        let lines = written.lines().map(|line| {
            let text = line.trim_start();
            format!("{}{text}\n", &line[..(line.len() - text.len()) / 2])
        });
        let text: String = lines.collect();
        fs::write(&self.path, text).map_err(Error::io("write", &self.path))
    }

    fn error(&self, message: &str) -> Error {
        Error::Notebook {
            path: self.path.clone(),
            message: message.to_owned(),
        }
    }
}

impl Outputs {
    /// What a list of outputs, as Jupyter keeps them, says; `None` if one of them has no text.
    pub(super) fn of(json: &Value) -> Option<Outputs> {
        let mut outputs = Outputs::default();
        for output in json.as_array().into_iter().flatten() {
            match (output["output_type"].as_str()?, output["name"].as_str()) {
                ("stream", Some("stderr")) => outputs.err += &text(&output["text"]),
                ("stream", _) => outputs.out += &text(&output["text"]),
                ("error", _) => {
                    let texts = output["traceback"].as_array()?.iter();
                    let texts: Vec<&str> = texts.map(Value::as_str).collect::<Option<_>>()?;
                    let refused = outputs.refused.get_or_insert_default();
                    refused.push_str(&plain(&texts.join("\n")));
                }
                _ => {
                    let plain = output["data"].get("text/plain")?;
                    outputs.out = format!("{}{}\n", outputs.out, text(plain));
                }
            }
        }
        Some(outputs)
    }
}

/// A text as Jupyter keeps it: one string, or a list of lines.
fn text(json: &Value) -> String {
    match json.as_array() {
        Some(lines) => lines.iter().filter_map(Value::as_str).collect(),
        None => json.as_str().unwrap_or_default().to_owned(),
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(cells: Value) -> Document {
        let json = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells});
        let path = PathBuf::from("x.ipynb");
        Document { path, json }
    }

    #[test]
    fn cells_and_outputs_are_read() {
        let read = document(json!([
            {"cell_type": "markdown", "source": ["# Title"]},
            {"cell_type": "code", "source": ["let a = 1;\n", "a"], "metadata": {}, "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["x\n", "y\n"]},
                {"output_type": "execute_result", "data": {"text/plain": ["1"]}}]},
            {"cell_type": "code", "source": "f()?;", "metadata": {"tags": ["raises-exception"]},
             "outputs": [{"output_type": "stream", "name": "stderr", "text": "no\n"}]},
        ]));
        let cells = read.cells().expect("they are as they should be");
        assert_eq!(cells.len(), 2);
        assert_eq!(
            (cells[0].index, cells[0].code.as_str()),
            (1, "let a = 1;\na")
        );
        assert_eq!(
            (cells[0].outputs.out.as_str(), cells[0].fails),
            ("x\ny\n1\n", false)
        );
        assert_eq!(
            (cells[1].outputs.err.as_str(), cells[1].fails),
            ("no\n", true)
        );
    }

    #[test]
    fn an_error_is_shown_by_tagged_cells_only() {
        let error = json!([{"output_type": "stream", "name": "stderr", "text": "no\n"}]);
        let untagged =
            json!([{"cell_type": "code", "source": "f()?", "metadata": {}, "outputs": error}]);
        let message = document(untagged).cells().expect_err("it has no tag");
        assert!(message.to_string().contains("not tagged"), "{message}");
        let tags = json!({"tags": [FAILS]});
        let good = json!([{"cell_type": "code", "source": "f()", "metadata": tags, "outputs": []}]);
        let message = document(good).cells().expect_err("it shows no error");
        assert!(message.to_string().contains("show no error"), "{message}");
    }

    #[test]
    fn outputs_come_back_as_they_were_set() {
        let cell = json!({"cell_type": "code", "source": "1", "metadata": {"tags": [FAILS]}, "outputs": []});
        let mut document = document(json!([cell]));
        let outputs = Outputs {
            out: "a\nb\n".to_owned(),
            err: "c\n".to_owned(),
            refused: Some("d".to_owned()),
        };
        document.set_outputs(0, &outputs);
        assert_eq!(document.cells().expect("it is tagged")[0].outputs, outputs);
    }
}
