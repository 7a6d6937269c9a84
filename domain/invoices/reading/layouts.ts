import type { Provider } from '../../providers.js';
import type { Maybe } from '../invoiceReading.js';
import type { DateOrder } from './printedDate.js';
import { fieldFrom, type Row, tokensAt } from './textRows.js';

/** What is known of a supplier's documents beside what they show: everything else is read as from any table. */
export interface Layout {
  name: string;
  /** Rows by which its documents are recognised; all have to occur. */
  anchors: readonly RegExp[];
  /** How dates with strokes are written where none of them tells. */
  dateOrder: DateOrder;
}

const STRIPE: Layout = {
  name: 'stripe',
  anchors: [
    /\b(?:invoice|receipt|credit note) number\b/i,
    /\b(?:date of issue|date due|date paid|due date)\b/i,
    /\bqty\b.*\bamount\b/i,
  ],
  dateOrder: 'month_first',
};

const AWS: Layout = {
  name: 'aws',
  anchors: [
    /\b(?:amazon web services|aws)\b/i,
    /\b(?:service charges|total for this invoice|invoice summary|detail)\b/i,
  ],
  dateOrder: 'month_first',
};

const AZURE: Layout = {
  name: 'azure',
  anchors: [
    /\b(?:microsoft|azure)\b/i,
    /\b(?:billing profile|invoice section|billing summary|charges|azure credits?)\b/i,
  ],
  dateOrder: 'month_first',
};

const GOOGLE: Layout = {
  name: 'google',
  anchors: [/\bgoogle\b/i, /\b(?:billing (?:account|id)|summary for|google cloud|payments profile)\b/i],
  dateOrder: 'month_first',
};

/** Reads any document; also tried for those that a layout recognises. */
export const TABLE: Layout = { name: 'table', anchors: [], dateOrder: 'month_first' };

const LAYOUTS: Readonly<Record<Provider, readonly Layout[]>> = {
  openai: [STRIPE],
  anthropic: [STRIPE],
  mistral: [{ ...STRIPE, dateOrder: 'day_first' }],
  cohere: [STRIPE],
  xai: [STRIPE],
  aws_bedrock: [AWS, STRIPE],
  azure_openai: [AZURE, STRIPE],
  google: [GOOGLE, STRIPE],
};

/** The layout whose anchors a document shows. */
export function layoutOf(rows: readonly Row[], provider: Provider): Layout {
  const found = LAYOUTS[provider].find(({ anchors }) =>
    anchors.every((anchor) => rows.some((row) => anchor.test(row.text))),
  );
  const order = LAYOUTS[provider][0]?.dateOrder ?? TABLE.dateOrder;
  return found ?? { ...TABLE, dateOrder: order };
}

/** Names of those who issue the invoices of a provider. */
const ISSUERS: Readonly<Record<Provider, RegExp>> = {
  openai: /\bopenai\b[\w ,.]*/i,
  anthropic: /\banthropic\b[\w ,.]*/i,
  google: /\bgoogle (?:cloud|llc|ireland|emea|asia|commerce)\b[\w ,.]*/i,
  azure_openai: /\bmicrosoft (?:corporation|ireland|regional|limited|deutschland|azure)\b[\w ,.]*/i,
  aws_bedrock: /\b(?:amazon web services|aws)\b[\w ,.]*/i,
  mistral: /\bmistral(?: ?ai)?\b[\w ,.]*/i,
  cohere: /\bcohere\b[\w ,.]*/i,
  xai: /\bx\.?ai\b[\w ,.]*/i,
};
const COMPANY =
  /\b(?:inc|llc|pbc|ltd|limited|gmbh|sas|sarl|s\.a\.s|corporation|corp|b\.?v|ag|opco|plc|emea)\b\.?/i;

/** The name of who issues a document: the provider's company before any other word of it. */
export function findIssuer(rows: readonly Row[], provider: Provider): Maybe<string> {
  const names = rows.flatMap((row) =>
    row.cells.flatMap((cell) => {
      const match = ISSUERS[provider].exec(cell.text);
      const name = match?.[0].trimEnd() ?? '';
      return match ? [fieldFrom(name, tokensAt(cell.tokens, match.index, match.index + name.length))] : [];
    }),
  );
  return names.find((name) => COMPANY.test(name.value)) ?? names[0] ?? null;
}
