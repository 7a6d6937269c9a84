import type { Bill, Item } from './bill.js';
import type { Chance } from './chance.js';
import { figure, plain, share, toDecimals, total } from './figures.js';

/** A plausible wrong amount whose difference is larger than rounding. */
function falsified(value: bigint, bill: Bill, parts: number, chance: Chance): bigint {
  const cent = bill.money.decimals === 0 ? figure('1') : figure('0.01');
  const sign = value < 0n ? -1n : 1n;
  const least = cent * BigInt(parts + 2);
  const shift = chance.one([
    () => cent * BigInt(chance.int(parts + 2, parts + 30)),
    () => toDecimals((value * sign * BigInt(chance.int(2, 20))) / 100n, bill.money.decimals),
    () => cent * 100n * BigInt(chance.int(1, 90)),
    () => value * sign * 9n,
  ])();
  return (
    value + sign * (shift > least ? shift : least) * (chance.yes(0.3) && value * sign > shift * 2n ? -1n : 1n)
  );
}

/** Computes taxes and all later sums from the subtotal. */
function carryOn(bill: Bill): void {
  const base = bill.subtotal + total(bill.rebates.map(({ value }) => value));
  for (const tax of bill.taxes) {
    tax.base = base;
    tax.value = toDecimals(share(tax.percent, base), bill.money.decimals);
  }
  settleTotal(bill, base + total(bill.taxes.map(({ value }) => value)));
}

function settleTotal(bill: Bill, value: bigint): void {
  bill.total = value;
  const open = value + total(bill.applied.map((entry) => entry.value));
  if (bill.paid !== null && bill.kind === 'receipt') bill.paid = value;
  else if (bill.paid !== null) bill.paid = open;
  bill.balance = bill.paid !== null && bill.kind !== 'receipt' ? 0n : open;
}

type Spot = 'line' | 'lines_sum' | 'tax' | 'total' | 'amount_due';

/** Falsifies one figure of the bill. */
export function spoil(bill: Bill, shows: { subtotal: boolean; balance: boolean }, chance: Chance): void {
  const dear = figure('2');
  const multiplied = bill.items.filter(
    (item) =>
      item.count !== null &&
      item.rate !== null &&
      item.net > dear &&
      item.net === toDecimals(item.net, bill.money.decimals),
  );
  const taxed = bill.taxes.filter(({ value }) => value > dear);
  const spots: Spot[] = ['total'];
  if (multiplied.length > 0) spots.push('line', 'line');
  if (shows.subtotal) spots.push('lines_sum');
  if (taxed.length > 0) spots.push('tax');
  if (shows.balance && bill.applied.length > 0) spots.push('amount_due');
  const spot = chance.one(spots);
  const tell = (line: number | null, printed: bigint, right: bigint) => {
    bill.contradictions.push({ kind: spot, line, printed: plain(printed), right: plain(right) });
    bill.marks.add('contradiction').add(`contradiction_${spot}`);
  };
  if (spot === 'line') {
    const item = chance.one(multiplied) as Item;
    const right = item.net;
    item.net = falsified(right, bill, 1, chance);
    tell(bill.items.indexOf(item) + 1, item.net, right);
    if (chance.yes(0.6)) {
      bill.subtotal += item.net - right;
      carryOn(bill);
    }
  } else if (spot === 'lines_sum') {
    const right = bill.subtotal;
    bill.subtotal = falsified(right, bill, bill.items.length, chance);
    tell(null, bill.subtotal, right);
    carryOn(bill);
  } else if (spot === 'tax') {
    const tax = chance.one(taxed);
    const right = tax.value;
    tax.value = falsified(right, bill, bill.items.length, chance);
    tell(null, tax.value, right);
    settleTotal(bill, bill.total + tax.value - right);
  } else if (spot === 'total') {
    const right = bill.total;
    const printed = falsified(right, bill, 0, chance);
    tell(null, printed, right);
    settleTotal(bill, printed);
  } else {
    const right = bill.balance;
    bill.balance = falsified(right, bill, 0, chance);
    tell(null, bill.balance, right);
  }
}
