//! XML as HDTrace uses it: a root whose children are read one at a time, each as a small tree.
//!
//! A trace of any length needs the memory of its largest single call only. Nesting deeper than
//! any MPI library's is refused, so that no file can exhaust the stack.

use super::HdtraceError;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// Elements inside each other; calls of MPI libraries reach about five.
const DEPTH_MAX: usize = 100;

/// An element with all that is in it.
#[derive(Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<Element>,
    text: String,
    line: usize,
}

/// A file being read.
pub(super) struct Document<'a> {
    file: &'a str,
    bytes: &'a [u8],
    reader: Reader<&'a [u8]>,
    /// Where line `line` begins; lines are counted on the way.
    line_start: usize,
    line: usize,
    root: Element,
    is_over: bool,
}

impl<'a> Document<'a> {
    /// Opens a document by its root element.
    pub(super) fn open(file: &'a str, bytes: &'a [u8]) -> Result<Document<'a>, HdtraceError> {
        let reader = Reader::from_reader(bytes);
        let root = Element::default();
        let (line_start, line, is_over) = (0, 1, false);
        let mut document = Document { file, bytes, reader, line_start, line, root, is_over };
        loop {
            match document.next()? {
                Event::Start(tag) => document.root = document.element(&tag)?,
                Event::Empty(tag) => {
                    document.root = document.element(&tag)?;
                    document.is_over = true;
                }
                Event::Eof => return Err(document.wrong("there is no XML element in it")),
                _ => continue,
            }
            return Ok(document);
        }
    }

    /// The root, without its children.
    pub(super) fn root(&self) -> &Element {
        &self.root
    }

    /// The next child of the root, none at its end.
    pub(super) fn child(&mut self) -> Result<Option<Element>, HdtraceError> {
        let mut open: Vec<Element> = Vec::new();
        while !self.is_over {
            let closed = match self.next()? {
                Event::Start(tag) => {
                    let element = self.element(&tag)?;
                    open.push(element);
                    None
                }
                Event::Empty(tag) => Some(self.element(&tag)?),
                Event::End(_) => {
                    self.is_over = open.is_empty();
                    open.pop()
                }
                Event::Text(text) => {
                    if let Some(element) = open.last_mut() {
                        element.text += &String::from_utf8_lossy(&text);
                    }
                    None
                }
                Event::Eof => return Err(self.cut(open.last())),
                _ => None,
            };
            if open.len() > DEPTH_MAX {
                return Err(self.wrong(format!("elements nest deeper than {DEPTH_MAX}")));
            }
            match (closed, open.last_mut()) {
                (Some(element), Some(parent)) => parent.children.push(element),
                (Some(element), None) => return Ok(Some(element)),
                (None, _) => {}
            }
        }
        Ok(None)
    }

    fn next(&mut self) -> Result<Event<'a>, HdtraceError> {
        self.reader.read_event().map_err(|error| {
            let place = self.reader.error_position() as usize;
            HdtraceError::at(self.file, self.line_of(place), error.to_string())
        })
    }

    fn element(&mut self, tag: &BytesStart) -> Result<Element, HdtraceError> {
        let place = self.reader.buffer_position() as usize;
        let line = self.line_of(place.saturating_sub(1));
        let name = String::from_utf8_lossy(tag.name().as_ref()).into_owned();
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            let wrong = |error: &dyn std::fmt::Display| {
                HdtraceError::at(self.file, line, format!("<{name}>: {error}"))
            };
            let attribute = attribute.map_err(|error| wrong(&error))?;
            let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
            let value = attribute.unescape_value().map_err(|error| wrong(&error))?;
            attributes.push((key, value.into_owned()));
        }
        Ok(Element { name, attributes, children: Vec::new(), text: String::new(), line })
    }

    /// Number of the line that holds a byte; places are asked for in ascending order.
    fn line_of(&mut self, place: usize) -> usize {
        let place = place.min(self.bytes.len());
        if place > self.line_start {
            let passed = &self.bytes[self.line_start..place];
            self.line += passed.iter().filter(|byte| **byte == b'\n').count();
            self.line_start = place;
        }
        self.line
    }

    fn wrong(&mut self, what: impl Into<String>) -> HdtraceError {
        let line = self.line_of(self.reader.buffer_position() as usize);
        HdtraceError::at(self.file, line, what.into())
    }

    fn cut(&mut self, open: Option<&Element>) -> HdtraceError {
        let name = open.map_or(&self.root.name, |element| &element.name).clone();
        self.wrong(format!("the file ends inside <{name}>: it was cut short"))
    }
}

impl Element {
    /// Value of an attribute, if it is there.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// A whole number that must be there.
    pub(super) fn number(&self, file: &str, name: &str) -> Result<i64, HdtraceError> {
        let text = self.wanted(file, name)?;
        text.parse().map_err(|_| self.wrong(file, format!("{name}='{text}' is no whole number")))
    }

    /// A whole number, if it is there.
    pub(super) fn number_if(&self, file: &str, name: &str) -> Result<Option<i64>, HdtraceError> {
        self.attribute(name).map(|_| self.number(file, name)).transpose()
    }

    /// An attribute that must be there.
    pub(super) fn wanted(&self, file: &str, name: &str) -> Result<&str, HdtraceError> {
        self.attribute(name).ok_or_else(|| self.wrong(file, format!("{name} is missing")))
    }

    /// Children of that name.
    pub(super) fn named<'e>(&'e self, name: &'e str) -> impl Iterator<Item = &'e Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// What stands between its tags.
    pub(super) fn text(&self) -> &str {
        self.text.trim()
    }

    /// Something is wrong with this element of `file`.
    pub(super) fn wrong(&self, file: &str, what: impl std::fmt::Display) -> HdtraceError {
        HdtraceError::at(file, self.line, format!("<{}>: {what}", self.name))
    }
}
