/** Typst colours, fonts, line breaks and tables of documents; templates begin with it. Its data is `d`. */
export const DOCUMENT_STYLE = String.raw`
#let d = json(bytes(sys.inputs.data))
#let loose = sys.inputs.loose == "yes"
#let ink = rgb("#0f172a")
#let muted = rgb("#64748b")
#let rule = rgb("#cbd5e1")
#let soft = rgb("#f1f5f9")
#let accent = rgb("#0f766e")
#let over = rgb("#c2410c")

// Contextual alternates and ligatures would show 8x7b as 8×7b and -> as an arrow.
#set text(font: "Inter", fallback: loose, lang: "en", size: 9.2pt, fill: ink, hyphenate: false,
  ligatures: false, features: (calt: 0))
#set par(leading: 0.62em, spacing: 0.9em)
#show heading.where(level: 1): it => block(above: 22pt, below: 9pt, sticky: true, text(size: 15pt, weight: 700, it.body))
#show heading.where(level: 2): it => block(above: 15pt, below: 6pt, sticky: true, text(size: 10.5pt, weight: 600, it.body))
#show link: set text(fill: accent)

// The head of all pages but the first, and the foot, from two texts and one.
#let pages(left, right, foot) = (
  paper: "a4",
  margin: (x: 20mm, top: 24mm, bottom: 22mm),
  header: context if counter(page).get().first() > 1 {
    set text(size: 7.5pt, fill: muted)
    grid(columns: (1fr, auto), column-gutter: 10pt, left, right)
    v(-5pt)
    line(length: 100%, stroke: 0.5pt + rule)
  },
  footer: context {
    set text(size: 7.5pt, fill: muted)
    grid(columns: (1fr, auto), column-gutter: 10pt,
      foot,
      [page #counter(page).display() of #counter(page).final().first()])
  },
)

// A long word, such as an id, a hash or an address, breaks after a separator, and anywhere in a part that is long itself. The
// parts are boxes: a line may end between two boxes, and no character is added that a reader would copy.
#let pieces(word) = for part in word.matches(regex("[^-/_.:?&=]*[-/_.:?&=]+|[^-/_.:?&=]+")) {
  if part.text.len() > 14 { for some in part.text.clusters().chunks(4) { box(some.join()) } } else { box(part.text) }
}
#show regex("\S{18,}"): it => if it.text.contains(regex("\pL")) { pieces(it.text) } else { it }

#let code(body) = text(font: "DejaVu Sans Mono", size: 0.86em, body)
#let small(body) = text(size: 7.6pt, fill: muted, body)

// Figures of one width line up in columns of numbers; elsewhere they would stretch names and dates.
#let shown(column, body) = if column.kind == "number" { text(number-width: "tabular", body) } else if column.kind == "code" { code(body) } else { body }

// The heading of a narrow column; its unit stays beside it.
#let two-lines(name) = if name.ends-with("$") { name } else if name.contains(", ") { name.replace(", ", ",\n") } else { name.replace(" ", "\n") }

// A table of data. Its columns have natural widths, but for the one at the place grow, or those that widths names. With narrow,
// headings of numbers take two lines.
#let ledger(data, widths: none, grow: 1, size: 7.6pt, narrow: false) = {
  set text(size: size)
  set par(leading: 0.5em)
  let columns = data.columns
  let align-of(x) = if columns.at(x).kind == "number" { right } else { left }
  let total = data.at("total", default: none)
  let gap = if narrow and columns.len() > 8 { 3.2pt } else { 5pt }
  table(
    columns: if widths != none { widths.slice(0, columns.len()) } else { columns.enumerate().map(((x, _)) => if x == grow { 1fr } else { auto }) },
    align: (x, y) => align-of(x),
    stroke: none,
    inset: (x: gap, y: 3.1pt),
    table.header(
      repeat: true,
      ..columns.enumerate().map(((x, column)) => table.cell(
        inset: (x: gap, top: 0pt, bottom: 4pt), stroke: (bottom: 0.8pt + ink), align: bottom + align-of(x),
        text(size: calc.min(size, 7.6pt), weight: 600, fill: muted, if narrow and column.kind == "number" { two-lines(column.name) } else { column.name })))),
    ..data.rows.enumerate().map(((i, row)) => row.enumerate().map(((x, c)) => table.cell(
      fill: if calc.odd(i) { soft } else { none }, breakable: false, shown(columns.at(x), c)))).flatten(),
    ..if total == none { () } else { total.enumerate().map(((x, c)) => table.cell(
      stroke: (top: 0.8pt + ink), breakable: false, strong(shown(columns.at(x), c)))) },
  )
}
`;
