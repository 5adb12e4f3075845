//! What documents need beside the escaping that `maud` does.

use maud::{Markup, PreEscaped, Render, html};
use std::fmt::Write;

/// The markup as text. Control characters cannot stand in HTML or SVG, not even escaped, but names
/// of files may hold them.
pub fn document(markup: Markup) -> String {
    let text = markup.into_string();
    let is_refused = |c: char| c.is_control() && c != '\n' && c != '\t';
    match text.contains(is_refused) {
        true => text.replace(is_refused, "\u{fffd}"),
        false => text,
    }
}

/// A page without timeline and script, as text: a title, a style, and what stands in it.
pub fn plain_page(title: &str, style: &str, body: Markup) -> String {
    document(html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            meta charset="utf-8";
            title { (title) }
            style { (PreEscaped(style)) }
            (body)
        }
        "\n"
    })
}

/// A heading of a section, where it has one.
pub(crate) fn heading(title: &str) -> Markup {
    html! { @if !title.is_empty() { h2 { (title) } } }
}

/// A place or length in a drawing; a tenth of a pixel is finer than any screen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Px(pub(crate) f64);

impl Render for Px {
    fn render_to(&self, out: &mut String) {
        let _ = write!(out, "{:.1}", self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_stand_in_a_document_is_replaced_and_the_rest_left_alone() {
        let text = document(html! { p { "a\u{0}b\u{7f}c\u{85}\r" } "\n\tµ" });
        assert_eq!(text, "<p>a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}</p>\n\tµ");
    }

    #[test]
    fn a_title_cannot_leave_its_page() {
        let page = plain_page("</title><script>", "p>b{}", html! { p title=("\"><script>") {} });
        assert!(!page.contains("<script>") && page.contains("p>b{}"), "{page}");
    }
}
