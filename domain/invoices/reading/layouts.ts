import type { Provider } from '../../providers.js';
import type { Maybe } from '../invoiceReading.js';
import type { DateOrder } from './printedDate.js';
import { fieldFrom, type Row, tokensAt } from './textRows.js';

/** Facts about a supplier's documents that are not printed on them. */
export interface Layout {
  name: string;
  /** Patterns that identify its documents; each has to match a row. */
  anchors: readonly RegExp[];
  /** Order of day and month in dates with slashes if no date is unambiguous. */
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

/** Layout of all other documents. */
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

/** Issuers of each provider's invoices. */
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

/** The issuer's name; a company name has precedence. */
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
