import { scaleBand } from 'd3-scale';
import { at, CHART_INK, CHART_WIDTH, escapeXml, svgOf, valueAxis } from './charts.js';
import { DOCUMENT_STYLE } from './documentStyle.js';

/**
 * Typst template of a claim's document. All its text comes as data (`domain/claims/evidence/claimDocument.ts`), so that
 * names are never markup.
 */
export const CLAIM_TEMPLATE = `${DOCUMENT_STYLE}
#set document(title: d.title + ", " + d.period, author: d.organization, date: datetime(
  year: d.date.at(0), month: d.date.at(1), day: d.date.at(2)))
#set page(..pages(d.title, [#d.provider · #d.period], d.footer))

// ---- first page ----
#grid(columns: (1fr, auto), align: (left + bottom, right + bottom),
  text(size: 8pt, weight: 600, fill: accent, tracking: 0.08em)[CLAIM FOR CREDIT],
  small[#d.generatedOn])
#v(-2pt)
#line(length: 100%, stroke: 1.4pt + accent)
#v(14pt)
#{
  show heading: it => block(above: 0pt, below: 12pt, text(size: 24pt, weight: 700, tracking: -0.01em, it.body))
  heading(level: 1, d.title)
}
#block(above: 0pt, below: 16pt, text(size: 11.5pt, fill: muted)[#d.provider · #d.period])
#block(above: 0pt, below: 18pt, width: 100%, fill: rgb("#f0fdfa"), stroke: (left: 2.4pt + accent), inset: (x: 13pt, y: 11pt), breakable: false)[
  #block(below: 7pt, par(text(size: 11pt, weight: 600, d.remedy)))
  #par(text(size: 8.8pt, fill: muted, d.remedyTo))
]
#set text(size: 9.4pt)
#let part(title) = {
  show heading: it => block(above: 18pt, below: 8pt, sticky: true, text(size: 11.5pt, weight: 600, it.body))
  heading(level: 2, title)
}

#grid(
  columns: (29mm, 1fr),
  row-gutter: 6.5pt,
  ..d.facts.map(one => (text(fill: muted, one.name), if one.isCode { code(one.value) } else { one.value })).flatten(),
)

#part[What went wrong]
#for one in d.faults {
  block(above: 0pt, below: 10pt, sticky: true, par[#strong(one.title + ".") #one.text])
  ledger(one.findings, widths: if one.findings.columns.len() > 3 { (1fr, 0.7fr, auto, auto, auto) } else { (1fr, 1fr, auto) }, size: 8.8pt)
  v(9pt)
}
#if d.moreFaults != "" { block(above: 0pt, below: 10pt, par(small(d.moreFaults))) }
#if d.rateChanges != none {
  block(above: 0pt, below: 10pt, sticky: true, par[Rates in question, in dollars for a million units])
  ledger(d.rateChanges, widths: if d.rateChanges.columns.at(0).name == "Model" { (1fr, 1fr, auto, auto, auto) } else { (1fr, auto, auto, auto) }, size: 8.8pt)
  if d.rateChangesNote != "" { block(above: 5pt, par(small(d.rateChangesNote))) }
}

#part[What it comes to]
#{
  set text(number-width: "tabular")
  table(
    columns: (1fr, auto), align: (left, right), stroke: none, inset: (x: 0pt, y: 4pt),
    ..d.sums.map(one => if one.isTotal {
      (table.cell(stroke: (top: 0.8pt + ink), strong(one.name)), table.cell(stroke: (top: 0.8pt + ink), strong(one.value)))
    } else { (one.name, one.value) }).flatten())
}
#block(above: 5pt, par(small(d.sumsNote)))


// ---- support and days ----
#set text(size: 9.2pt)
#pagebreak()
= What supports the claim
#for one in d.support {
  block(breakable: false, below: 13pt, {
    block(below: 6pt, par[#strong(one.title) #text(fill: muted)[· #one.subtitle]])
    set text(size: 8.4pt)
    grid(columns: (24mm, 1fr), row-gutter: 5.4pt,
      ..one.points.map(point => (text(fill: muted, point.name), point.text)).flatten())
  })
}
#if d.moreSupport > 0 { par(small[#d.moreSupport further findings are in the lines.]) }
#for note in d.notes { block(above: 8pt, par(small[Note: #note])) }

= Charged and expected, day by day
#if d.chartDays.len() > 0 {
  block(sticky: true, below: 4pt, grid(columns: 4, column-gutter: 5pt, align: horizon,
    box(width: 8pt, height: 8pt, fill: over), text(size: 8pt)[Charged #h(8pt)],
    box(width: 8pt, height: 8pt, fill: accent), text(size: 8pt)[Expected]))
  block(sticky: true, image(bytes(d.chart), format: "svg", width: 100%, alt: d.chartText))
}
#ledger(d.byDay, widths: (1.2fr, 1fr, 1fr, 1fr), size: 8.2pt)

// ---- lines ----
= Lines
#block(sticky: true, par[Each line is one day and class of the bill. Expected is the right number of units at the rate that holds (section Rates). Dollars are exact and add up; rates are dollars for a million units.])
#for group in d.groups {
  heading(level: 2, group.title)
  block(above: 0pt, below: 8pt, sticky: true, par(small(group.subtitle)))
  ledger(group, grow: if group.columns.at(0).name == "Day" { 1 } else { 0 }, size: 7.1pt, narrow: true)
}

#if d.undercharges != none {
  heading(level: 2)[Charged too little, and taken off]
  block(sticky: true, par[The account was charged too little on these days of the same months. The claim takes it off.])
  ledger(d.undercharges, widths: (auto, 1fr, 1fr, auto))
}

#heading(level: 2)[Rates]
#if d.rates.len() == 0 { par[No rate enters: the lines are as they were found.] } else {
  for table in d.rates { ledger(table, grow: table.columns.len() - 1, size: 7.4pt, narrow: true) }
  for source in d.rateSources {
    block(above: 5pt, par(small[#source.text#if source.url != "" [: #link(source.url, source.url)]]))
  }
}

#if d.examples.len() > 0 {
  heading(level: 2)[A line worked out]
  block(sticky: true, par[The largest line of #if d.groups.len() > d.examples.len() [some findings] else [each finding]. Every other line follows in the same way.])
  for one in d.examples {
    block(breakable: false, below: 10pt, {
      block(below: 5pt, par(strong(one.title)))
      set text(size: 8pt)
      grid(columns: (22mm, 32mm, 1fr), row-gutter: 4.6pt, column-gutter: (0mm, 4mm),
        ..one.steps.map(step => (
          text(fill: muted, step.name),
          align(right, text(number-width: "tabular", step.value)),
          text(fill: muted, step.from))).flatten())
    })
  }
}

#heading(level: 2)[Calls]
#block(sticky: d.samples.rows.len() > 0, par(d.samplesNote))
#if d.samples.rows.len() > 0 {
  // Ids and models in one line, unless they are very long.
  let longest(x, most) = calc.min(most, calc.max(..d.samples.rows.map(row => row.at(x).len()), 19))
  ledger(d.samples, widths: (auto, longest(1, 34) * 3.55pt + 11pt, longest(2, 26) * 3.6pt + 11pt, auto, 1fr), size: 6.8pt)
}

#heading(level: 2)[Pages of the bill]
#block(sticky: true, par[#d.provider’s own reports as they were received. The pack holds them byte for byte.])
#for page in d.pages {
  block(breakable: false, above: 8pt, {
    set text(size: 7.8pt)
    set par(spacing: 0.55em)
    par[#strong(code(page.file))#if not page.kept [ #text(fill: over)[(too large for the pack)]] #h(1fr) #text(fill: muted)[#page.size, received #page.received]]
    if page.from != "" and not page.file.ends-with(page.from) { par(text(fill: muted, page.from)) }
    par(text(fill: muted)[SHA-256 #code(page.sha256)])
  })
}

#heading(level: 2)[How to check it]
#par[The evidence pack #code(d.packName) belongs to this document. It holds the lines as CSV, the evidence as JSON, the pages of the bill, the calls and the rates; #code("manifest.json") lists the SHA-256 of every file.]
#block(sticky: true, par[Trueup’s verifier works the amounts out again from the pages, calls and rates:])
#block(fill: soft, inset: (x: 8pt, y: 6pt), width: 100%, par(code("./trueup evidence verify " + d.packName)))
#block(below: 10pt, par[The verifier is part of Trueup’s source code (open source, Apache License 2.0), in #code("bin/evidence"). It needs Node.js 20.19 or later and no account, database or network, and shares no code with the program that made this claim. #d.organization sends you the source code on request.])
#grid(columns: (38mm, 1fr), row-gutter: 5pt,
  ..d.versions.map(one => (small(one.name), text(size: 7.8pt, if one.isCode { code(one.value) } else { one.value }))).flatten())
`;

/** A day's dollars, for the chart only. */
export interface ChartDay {
  /** Label below its bars, e.g. `9 Oct`. */
  label: string;
  billed: number;
  expected: number;
}

const HEIGHT = 250;
const MARGIN = { top: 12, right: 14, bottom: 28, left: 62 };
const LABELS_MAX = 11;
const BILLED = '#c2410c';
const EXPECTED = '#0f766e';

/** Billed against expected by day, as an SVG of fixed size; equal days result in equal text. */
export function dayChart(days: readonly ChartDay[]): string {
  const most = Math.max(...days.flatMap(({ billed, expected }) => [billed, expected]), 0.01);
  const { y, grid } = valueAxis(most, 'dollars', HEIGHT);
  const x = scaleBand(
    days.map((_day, place) => String(place)),
    [MARGIN.left, CHART_WIDTH - MARGIN.right],
  )
    .paddingInner(days.length > 1 ? 0.34 : 0)
    .paddingOuter(days.length > 6 ? 0.2 : 0.5);
  const width = Math.min(x.bandwidth(), 72);
  const every = Math.ceil(days.length / LABELS_MAX);
  const base = y(0);
  const bars = days.flatMap((day, place) => {
    const left = (x(String(place)) ?? 0) + (x.bandwidth() - width) / 2;
    const half = width / 2;
    const bar = (from: number, value: number, fill: string) =>
      `<rect x="${at(from)}" y="${at(y(value))}" width="${at(Math.max(half - 0.8, 0.8))}" height="${at(Math.max(base - y(value), 0))}" fill="${fill}"/>`;
    const label =
      place % every === 0
        ? [
            `<text x="${at(left + half)}" y="${HEIGHT - 8}" text-anchor="middle" fill="${CHART_INK}">${escapeXml(day.label)}</text>`,
          ]
        : [];
    return [bar(left, day.billed, BILLED), bar(left + half, day.expected, EXPECTED), ...label];
  });
  return svgOf(HEIGHT, [...grid, ...bars]);
}
