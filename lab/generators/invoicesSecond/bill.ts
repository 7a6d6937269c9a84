import type { Contradiction, TruthLineKind } from '../invoiceTruth.js';
import type { DateStyle } from './calendar.js';
import type { Money, Notation } from './figures.js';
import type { Buyer, Seller } from './sellers.js';

export interface Item {
  text: string;
  count: bigint | null;
  rate: bigint | null;
  net: bigint;
  /** Percent, if the layout prints it for each item. */
  taxPercent: bigint | null;
  from: string | null;
  to: string | null;
  kind: TruthLineKind;
  /** Heading of the item's table; one table if all are equal. */
  group: string;
}

export interface Bill {
  seller: Seller;
  buyer: Buyer;
  kind: 'invoice' | 'credit_note' | 'receipt';
  marks: Set<string>;
  money: Money;
  notation: Notation;
  dates: DateStyle;
  number: string;
  replaces: string | null;
  account: string | null;
  issued: string;
  due: string | null;
  from: string;
  to: string;
  items: Item[];
  /** As printed. */
  subtotal: bigint;
  rebates: { name: string; value: bigint }[];
  taxes: { name: string; percent: bigint; base: bigint; value: bigint; reverse: boolean }[];
  total: bigint;
  applied: { name: string; value: bigint }[];
  paid: bigint | null;
  /** Amount due. */
  balance: bigint;
  contradictions: Contradiction[];
}
