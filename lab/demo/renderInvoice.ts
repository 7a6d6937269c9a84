import { DOCUMENT_STYLE } from '../../adapters/typst/documentStyle.js';
import type { Renderer } from '../../adapters/typst/renderer.js';
import { usdText } from '../bills/results.js';
import type { DemoInvoice } from './invoices.js';
import type { DemoProvider } from './prices.js';

/** All text is passed as data, so that no name can act as markup. */
const TEMPLATE = `${DOCUMENT_STYLE}
#set document(title: "Invoice " + d.number, author: d.issuer, date: datetime(
  year: d.date.at(0), month: d.date.at(1), day: d.date.at(2)))
#set page(
  paper: "us-letter",
  margin: (x: 18mm, top: 18mm, bottom: 20mm),
  footer: context {
    set text(size: 7.5pt, fill: muted)
    grid(columns: (1fr, auto), [#d.number · #d.due],
      [Page #counter(page).display() of #counter(page).final().first()])
  },
)
#set text(number-width: "tabular")
#let fact(name, value) = (text(weight: 600, name), value)
#grid(columns: (1fr, auto), align: (left + bottom, right + bottom),
  text(size: 20pt, weight: 700)[Invoice], text(size: 15pt, weight: 600, fill: rgb(d.colour), d.brand))
#v(10pt)
#grid(columns: (30mm, 1fr), row-gutter: 6pt,
  ..d.facts.map(one => fact(one.name, one.value)).flatten())
#v(10pt)
#grid(columns: (1fr, 1fr),
  [#strong(d.issuer) #linebreak() #d.issuerAddress.join(linebreak())],
  [#strong[Bill to] #linebreak() #d.customer.join(linebreak())])
#v(12pt)
#text(size: 14pt, weight: 700, d.due)
#v(6pt)
#table(
  columns: (1fr, auto, auto, auto), align: (left, right, right, right), stroke: none, inset: (x: 7pt, y: 4.6pt),
  table.header(repeat: true, ..("Description", "Qty", "Unit price", "Amount").map(name =>
    table.cell(stroke: (bottom: 0.6pt + rule), text(size: 8pt, fill: muted, name)))),
  ..d.lines.map(one => (
    table.cell(breakable: false)[#one.description #linebreak() #small(one.period)],
    one.quantity, one.price, one.amount)).flatten(),
)
#v(4pt)
#align(right, block(width: 58%, breakable: false, table(
  columns: (1fr, auto), align: (left, right), inset: (x: 4pt, y: 4.6pt), stroke: (x: none, y: 0.5pt + rule),
  ..d.sums.map(one => if one.isStrong { (strong(one.name), strong(one.value)) } else { (one.name, one.value) }).flatten())))
`;

const SUPPLIERS: Record<DemoProvider, { brand: string; issuer: string; address: string[]; colour: string }> =
  {
    openai: {
      brand: 'OpenAI',
      issuer: 'OpenAI, LLC',
      address: ['548 Market Street, PMB 97273', 'San Francisco, California 94104', 'United States'],
      colour: '#0f172a',
    },
    anthropic: {
      brand: 'Anthropic',
      issuer: 'Anthropic, PBC',
      address: ['548 Market Street, PMB 90375', 'San Francisco, California 94104', 'United States'],
      colour: '#b45309',
    },
  };

const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ');

function dayText(day: string): string {
  const [year, month, date] = day.split('-').map(Number);
  return `${MONTHS[(month ?? 1) - 1]} ${date}, ${year}`;
}

/** Dollars with two decimals, or with all of them if there are more. */
function dollars(pico: bigint): string {
  const [whole = '', part = ''] = usdText(pico < 0n ? -pico : pico).split('.');
  return `${pico < 0n ? '-' : ''}$${grouped(whole)}.${part.padEnd(2, '0')}`;
}

function grouped(digits: string | number): string {
  return String(digits).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** The PDF of an invoice, rendered like the product's own documents; equal invoices give equal bytes. */
export function renderDemoInvoice(renderer: Pick<Renderer, 'render'>, invoice: DemoInvoice): Promise<Buffer> {
  const { brand, issuer, address, colour } = SUPPLIERS[invoice.provider];
  const period = `${dayText(invoice.firstDay)} - ${dayText(invoice.lastDay)}`;
  const { tax } = invoice;
  const plain = (name: string, pico: bigint) => ({ name, value: dollars(pico), isStrong: false });
  const total = dollars(invoice.totalPico);
  const data = {
    number: invoice.number,
    brand,
    issuer,
    issuerAddress: address,
    colour,
    customer: [invoice.customer, '98 San Jacinto Blvd', 'Austin, Texas 78701', 'United States'],
    date: invoice.issueDay.split('-').map(Number),
    due: `${total} USD due ${dayText(invoice.issueDay)}`,
    facts: [
      { name: 'Invoice number', value: invoice.number },
      { name: 'Date of issue', value: dayText(invoice.issueDay) },
      { name: 'Date due', value: dayText(invoice.issueDay) },
    ],
    lines: invoice.lines.map(({ description, quantity, ratePico, pico }) => ({
      description,
      period,
      quantity: quantity === null ? '' : grouped(quantity),
      price: ratePico === null ? '' : dollars(ratePico),
      amount: dollars(pico),
    })),
    sums: [
      plain('Subtotal', invoice.subtotalPico),
      ...(tax
        ? [
            plain('Total excluding tax', invoice.subtotalPico),
            plain(`${tax.name} (${tax.percent}% on ${dollars(invoice.subtotalPico)})`, tax.pico),
          ]
        : []),
      plain('Total', invoice.totalPico),
      { name: 'Amount due', value: `${total} USD`, isStrong: true },
    ],
  };
  return renderer.render({ template: TEMPLATE, data, createdSeconds: invoice.createdSeconds });
}
