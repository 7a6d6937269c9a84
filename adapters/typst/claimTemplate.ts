/**
 * The document of a claim, in Typst. Everything that it says comes as data (`domain/claims/evidence/claimDocument.ts`), so
 * that no name in it is ever markup.
 */
export const CLAIM_TEMPLATE = String.raw`
#let d = json(bytes(sys.inputs.data))
#let loose = sys.inputs.loose == "yes"
#let ink = rgb("#0f172a")
#let muted = rgb("#64748b")
#let rule = rgb("#cbd5e1")
#let soft = rgb("#f1f5f9")
#let accent = rgb("#0f766e")
#let over = rgb("#c2410c")

#set document(title: d.title + ", " + d.period, author: d.organization, date: datetime(
  year: d.date.at(0), month: d.date.at(1), day: d.date.at(2)))
#set page(
  paper: "a4",
  margin: (x: 20mm, top: 24mm, bottom: 22mm),
  header: context if counter(page).get().first() > 1 {
    set text(size: 7.5pt, fill: muted)
    grid(columns: (1fr, auto), d.title, [#d.provider · #d.period])
    v(-6pt)
    line(length: 100%, stroke: 0.5pt + rule)
  },
  footer: context {
    set text(size: 7.5pt, fill: muted)
    grid(columns: (1fr, auto),
      [#d.footer],
      [page #counter(page).display() of #counter(page).final().first()])
  },
)
#set text(font: "Inter", fallback: loose, lang: "en", size: 9.2pt, fill: ink, hyphenate: false)
#set par(leading: 0.62em, spacing: 0.9em)
#show heading.where(level: 1): it => block(above: 0pt, below: 9pt, sticky: true, text(size: 15pt, weight: 700, it.body))
#show heading.where(level: 2): it => block(above: 15pt, below: 6pt, sticky: true, text(size: 10.5pt, weight: 600, it.body))
#show link: set text(fill: accent)

#let small(body) = text(size: 7.6pt, fill: muted, body)
#let label(body) = text(size: 7.2pt, weight: 600, fill: muted, tracking: 0.04em, upper(body))
#let th(body) = text(size: 7.2pt, weight: 600, fill: muted, body)
// Long words of data, such as model names and addresses, break where they must.
#let breaking(it) = it.replace(regex("[/_.:?&=\\-]|[0-9A-Za-z]{20}"), m => m.text + "\u{200b}")

// Figures of one width stand under each other in columns of numbers; elsewhere they would stretch names and dates.
#let figures(align, x, body) = if align(x, 1) == right { text(number-width: "tabular", body) } else { body }
#let lefts = (x, y) => left

#let ledger(columns, align, header, rows, total: none, size: 7.6pt) = {
  set text(size: size)
  set par(leading: 0.5em)
  table(
    columns: columns,
    align: align,
    stroke: none,
    inset: (x: 3.2pt, y: 3.1pt),
    table.header(
      repeat: true,
      ..header.map(h => table.cell(inset: (x: 3.2pt, top: 0pt, bottom: 4pt), stroke: (bottom: 0.8pt + ink), align: bottom + align(header.position(one => one == h), 0), th(h)))),
    ..rows.enumerate().map(((i, row)) => row.enumerate().map(((x, c)) => table.cell(
      fill: if calc.odd(i) { soft } else { none }, breakable: false, figures(align, x, c)))).flatten(),
    ..if total == none { () } else { total.enumerate().map(((x, c)) => table.cell(
      stroke: (top: 0.8pt + ink), strong(figures(align, x, c)))) },
  )
}
#let numbers(from) = (x, y) => if x >= from { right } else { left }

// ---- summary ----
#block(width: 100%, below: 12pt, grid(columns: (1fr, auto), align: (left + bottom, right + bottom),
  text(size: 8pt, weight: 600, fill: accent, tracking: 0.08em)[CLAIM FOR CREDIT],
  small[#d.generatedOn]))
#line(length: 100%, stroke: 1.4pt + accent)
#v(9pt)
#v(4pt)
#{
  show heading: it => block(above: 0pt, below: 12pt, text(size: 24pt, weight: 700, tracking: -0.01em, it.body))
  heading(level: 1, d.title)
}
#block(above: 0pt, below: 22pt, text(size: 11.5pt, fill: muted)[#d.provider · #d.period])
#set text(size: 9.8pt)
#let part(title) = {
  show heading: it => block(above: 21pt, below: 9pt, text(size: 11.5pt, weight: 600, it.body))
  heading(level: 2, title)
}

#grid(
  columns: (29mm, 1fr),
  row-gutter: 8pt,
  ..d.facts.map(((name, value)) => (text(fill: muted, name), breaking(value))).flatten(),
)

#let max-shown = 3
#part[What went wrong]
#for one in d.disputes.slice(0, calc.min(max-shown, d.disputes.len())) {
  block(below: 8pt, breakable: false, grid(columns: (1fr, auto), column-gutter: 8mm,
    [#par[#strong[#breaking(one.model)] #text(fill: muted)[· #one.kind · #one.days]]
     #par[#one.reason]
     #par[#small(one.sure)]],
    text(weight: 600, one.amount)))
}
#if d.disputes.len() > max-shown [#small[And #(d.disputes.len() - max-shown) more, each with its lines below.]]

#part[What it comes to]
#{
  set text(number-width: "tabular")
  table(
    columns: (1fr, auto), align: (left, right), stroke: none, inset: (x: 0pt, y: 5pt),
    ..d.sums.map(one => if one.strong {
      (table.cell(stroke: (top: 0.8pt + ink), strong(one.label)), table.cell(stroke: (top: 0.8pt + ink), strong(one.value)))
    } else { (one.label, one.value) }).flatten())
}

#block(above: 20pt, width: 100%, fill: rgb("#f0fdfa"), stroke: (left: 2.4pt + accent), inset: (x: 13pt, y: 12pt), breakable: false)[
  #label[What is asked for]
  #v(1pt)
  #text(size: 11pt, weight: 600, d.remedy)
  #linebreak()
  #text(size: 9pt, fill: muted)[To #d.provider account #d.account. Please quote #box(d.claimId).]
]
#for note in d.notes [#block(above: 8pt, small[Note: #note])]

// ---- chart ----
#set text(size: 9.2pt)
#pagebreak()
= Charged and expected, day by day
#grid(columns: 4, column-gutter: 5pt, align: horizon,
  box(width: 8pt, height: 8pt, fill: over), text(size: 8pt)[Charged #h(8pt)],
  box(width: 8pt, height: 8pt, fill: accent), text(size: 8pt)[Expected])
#v(2pt)
#image(bytes(d.chart), format: "svg", width: 100%, alt: d.chartText)
#v(6pt)
#ledger((1.2fr, 1fr, 1fr, 1fr), numbers(1), ("Day (UTC)", "Charged, $", "Expected, $", "Difference, $"), d.byDay, total: d.byDayTotal, size: 8.2pt)

// ---- lines ----
#v(22pt, weak: true)
= Lines
#block(sticky: true)[Each line is a day and class of the bill as charged, and what the quantity costs at the rates that hold (next section). Dollars are exact and add up; rates are dollars for a million units.]
#for group in d.groups {
  heading(level: 2, breaking(group.title))
  block(above: 0pt, below: 6pt, sticky: true, small(group.subtitle))
  ledger(
    (auto, 1fr, auto, auto, auto, auto, auto, auto),
    numbers(2),
    ("Day", "Class", "Units charged", "Rate", "Charged, $", "Agreed rate", "Expected, $", "Difference, $"),
    group.lines, total: group.total, size: 7.1pt)
}

#if d.undercharges.len() > 0 [
  == Charged too little, and netted
  #par[What the account was charged too little in the same months is taken off.]
  #ledger((auto, 1fr, 1fr, auto), numbers(3), ("Day", "Model", "What it is", "Difference, $"), d.undercharges,
    total: ("Total", "", "", d.underchargeTotal))
]

== Rates
#if d.rates.len() == 0 [#par[No rate enters: the lines are stated as they were found.]] else {
  ledger((1fr, 0.9fr, auto, auto, 1.3fr), (x, y) => if x == 2 { right } else { left },
    ("Model", "Class", "$ per million", "In force", "Where it comes from"), d.rates.map(r => r.map(breaking)))
  for (key, name, url) in d.priceSources {
    block(above: 4pt, small[#if key != "" [#key: ]#name#if url != "" [, #link(url, breaking(url))]])
  }
}

#if d.examples.len() > 0 [
  == How a line is worked out
  #par[The largest line of each dispute. Every line follows the same way; the pack’s program does all of them again.]
  #for one in d.examples {
    block(breakable: false, below: 9pt, {
      par(strong(breaking(one.title)))
      set text(size: 8pt)
      grid(columns: (20mm, 34mm, 1fr), row-gutter: 4.6pt,
        ..one.steps.map(((a, b, c)) => (text(fill: muted, a), align(right, b) , pad(left: 4mm, text(fill: muted, breaking(c))))).flatten())
    })
  }
]

#if d.evidenceSteps.len() > 0 [
  == Why it is this
  #par[The evidence in bits: each step makes what is claimed so many times two likelier, or less likely.]
  #ledger((52mm, 70mm, 16mm), (x, y) => if x == 2 { right } else { left }, ("Signal", "What it shows", "Bits"), d.evidenceSteps)
]

== Calls
#par(d.samplesNote)
#if d.samples.len() > 0 {
  ledger((28mm, 1.25fr, 1fr, 12mm, 2.1fr), lefts, ("Began (UTC)", "Request id", "Model that answered", "Status", "Usage as received"),
    d.samples.map(s => (s.at(0), ..s.slice(1).map(breaking))), size: 6.7pt)
}

== Pages of the bill
#par[What the provider’s own reports said, as they were received. The pack holds them byte for byte.]
#for page in d.pages {
  block(breakable: false, above: 7pt, {
    set text(size: 7.6pt)
    par[#strong(breaking(page.file))#if not page.kept [ #text(fill: over)[(too large for the pack)]] #h(1fr) #text(fill: muted)[#page.size, received #page.fetched]]
    if page.from != "" { par(text(fill: muted, breaking(page.from))) }
    par(text(size: 6.9pt, fill: muted)[SHA-256 #page.sha256])
  })
}

== How to check it
#par[The pack #raw("evidence.tar.gz") holds this document, the lines as CSV, the evidence as JSON, the pages, the calls and the rates. #raw("npm run evidence:verify -- evidence.tar.gz") works everything out again from the pages, calls and rates, without any of the programs that made the claim.]
#grid(columns: (34mm, 1fr), row-gutter: 5pt,
  ..d.versions.map(((name, value)) => (small(name), text(size: 7.6pt, breaking(value)))).flatten())
`;
