import { DOCUMENT_STYLE } from './documentStyle.js';

/**
 * A management report, in Typst. All of its text comes as data (`domain/reports/reportDocument.ts`), so that no name in it
 * is ever markup.
 */
export const REPORT_TEMPLATE = `${DOCUMENT_STYLE}
#let brand = rgb(d.brandColor)
#let brand-text = rgb(d.brandTextColor)
#set document(title: d.title + ", " + d.organization + ", " + d.period, author: d.organization, date: datetime(
  year: d.date.at(0), month: d.date.at(1), day: d.date.at(2)))
#set page(..pages(d.organization, [#d.title · #d.period#if d.provisional != "" [ · provisional]], d.footer))

// ---- cover ----
#if d.logo != "" {
  block(above: 0pt, below: 14mm, image(bytes(d.logo), format: "png", height: 16mm, fit: "contain", alt: "Logo of " + d.organization))
} else { v(22mm) }
#text(size: 8pt, weight: 600, fill: brand-text, tracking: 0.08em, upper(d.title))
#v(-2pt)
#line(length: 100%, stroke: 1.4pt + brand)
#v(12pt)
#block(above: 0pt, below: 10pt, par(leading: 0.4em, text(size: 27pt, weight: 700, tracking: -0.01em, d.organization)))
#block(above: 0pt, below: 26pt, text(size: 13pt, fill: muted, d.period))
#grid(
  columns: (31mm, 1fr),
  row-gutter: 7pt,
  ..d.facts.map(one => (text(fill: muted, one.name), one.value)).flatten(),
)
#if d.provisional != "" {
  block(above: 16pt, below: 0pt, width: 100%, fill: soft, stroke: (left: 2.4pt + ink), inset: (x: 11pt, y: 9pt), par(strong(d.provisional)))
}
#block(above: 26pt, below: 8pt, text(size: 11.5pt, weight: 600)[Contents])
// Not outline(), whose entries contain an invisible character that a reader would copy.
#context for it in query(heading.where(level: 1)) {
  let place = it.location()
  block(above: 0pt, below: 0pt, width: 100%, stroke: (bottom: 0.5pt + rule), inset: (y: 5pt),
    link(place, text(fill: ink, grid(columns: (1fr, auto), it.body, [#counter(page).at(place).first()]))))
}
#v(1fr)
#for note in d.notes { block(above: 5pt, below: 0pt, par(small(note))) }

// ---- sections ----
#let legend(entries) = if entries.len() > 0 {
  block(above: 3pt, below: 4pt, sticky: true, stack(dir: ltr, spacing: 12pt,
    ..entries.map(one => box(grid(columns: 2, column-gutter: 5pt, align: horizon,
      box(width: 8pt, height: 8pt, fill: rgb(one.color)), text(size: 8pt, one.name))))))
}
// A section begins on a new page where less than a third of this one is left: an empty block of that height comes before
// it and is taken back.
#let section-height = (297mm - 24mm - 22mm) / 3
#for (place, section) in d.sections.enumerate() {
  if place == 0 { pagebreak(weak: true) } else {
    v(22pt, weak: true)
    block(above: 0pt, below: 0pt, breakable: false, height: section-height)
    v(-section-height)
  }
  {
    show heading: it => block(above: 0pt, below: 9pt, sticky: true, text(size: 15pt, weight: 700, it.body))
    heading(level: 1, section.title)
  }
  for sentence in section.sentences { block(above: 0pt, below: 7pt, width: 100%, par(sentence)) }
  // Above the figures: at their end it could be alone on a page.
  block(above: 0pt, below: 0pt, width: 100%, par(small(section.sources)))
  if section.chart != none {
    block(above: 14pt, below: 0pt, breakable: false, width: 100%, {
      block(below: 6pt, text(size: 9.4pt, weight: 600, section.chart.title))
      legend(section.chart.legend)
      image(bytes(section.chart.svg), format: "svg", width: 100%, alt: section.chart.alt)
    })
  }
  for part in section.tables {
    let content = {
      heading(level: 2, part.title)
      ledger(part.table, grow: 0, size: 8.2pt)
      if part.note != "" { block(above: 5pt, par(small(part.note))) }
    }
    // A short table stays whole: no single row is left for the next page.
    if part.table.rows.len() <= 16 { block(above: 15pt, below: 0pt, breakable: false, width: 100%, content) } else { content }
  }
}
`;
