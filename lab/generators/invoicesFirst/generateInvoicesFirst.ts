import type { GeneratedInvoice } from '../invoiceTruth.js';
import { SUPPLIERS, type Supplier } from './catalog.js';
import { drawAws, drawAzure, drawGoogle, prepareAws, prepareAzure, prepareGoogle } from './clouds.js';
import { plantContradiction } from './contradict.js';
import { sum } from './decimal.js';
import { type DraftInvoice, type Printed, truthOf } from './draft.js';
import { roundedMoney } from './numberStyle.js';
import { noteFeatures, planInvoice, SUBJECTS, type Subject } from './plan.js';
import { Random } from './random.js';
import { drawLoss, type FontName, Sheet } from './sheet.js';
import { drawStripe, stripePrints } from './stripe.js';

const CONTRADICTED = 0.25;

function prepare(draft: DraftInvoice, supplier: Supplier, random: Random): Printed {
  if (supplier.layout === 'aws') return prepareAws(draft, random);
  if (supplier.layout === 'azure') return prepareAzure(draft);
  return supplier.layout === 'google' ? prepareGoogle(draft) : stripePrints(draft);
}

/** Computes the sums of the printed lines again. */
function addUpAgain(draft: DraftInvoice): void {
  const lines = roundedMoney(sum(draft.lines.map(({ amount }) => amount)), draft.currency);
  const base = lines + sum(draft.discounts.map(({ amount }) => amount));
  draft.subtotal = lines;
  for (const tax of draft.taxes) {
    tax.base = base;
    tax.amount = tax.isReverseCharge
      ? 0n
      : roundedMoney(((tax.rate ?? 0n) * base) / 100_000_000_000_000n, draft.currency);
  }
  draft.total = base + sum(draft.taxes.map(({ amount }) => amount));
  draft.credits = [];
  draft.amountDue = draft.total;
}

async function makeInvoice(
  supplier: Supplier,
  subject: Subject,
  random: Random,
  name: string,
): Promise<GeneratedInvoice> {
  const draft = planInvoice(supplier, subject, random);
  const font: FontName = random.pick(['inter', 'liberation', 'helvetica']);
  if (font === 'helvetica' && draft.style.minus === '\u2212') draft.style = { ...draft.style, minus: '-' };
  const printed = prepare(draft, supplier, random);
  if (supplier.layout !== 'stripe') addUpAgain(draft);
  noteFeatures(draft);
  const loss = drawLoss(font, random);
  if (loss !== 'none') draft.features.add('lost_glyphs').add(`lost_${loss}`);
  if (random.chance(CONTRADICTED)) plantContradiction(draft, printed.subtotal, printed.amountDue, random);
  const sheet = new Sheet({
    size: random.chance(0.5) ? 'A4' : 'LETTER',
    font,
    loss,
    title: `${draft.kind} ${draft.number}`,
    madeOn: draft.issueDate,
  });
  if (supplier.layout === 'aws') drawAws(sheet, draft);
  else if (supplier.layout === 'azure') drawAzure(sheet, draft, supplier);
  else if (supplier.layout === 'google') drawGoogle(sheet, draft, supplier);
  else drawStripe(sheet, draft, supplier, random);
  if (sheet.pages > 1) draft.features.add('several_pages');
  const pdf = await sheet.finish();
  return { name, pdf, truth: truthOf(draft, printed, sheet.pages, sheet.boxes) };
}

/** Invoices of the eight suppliers in turn; the same seed makes the same bytes. */
export async function* generateInvoicesFirst(seed: number, count = 80): AsyncIterable<GeneratedInvoice> {
  for (let at = 0; at < count; at += 1) {
    const supplier = SUPPLIERS[at % SUPPLIERS.length] as Supplier;
    // Shifted by the supplier, so that a short corpus has several subjects.
    const subject = SUBJECTS[
      (Math.floor(at / SUPPLIERS.length) + (at % SUPPLIERS.length) * 3) % SUBJECTS.length
    ] as Subject;
    const name = `first-${seed}-${String(at).padStart(3, '0')}`;
    yield await makeInvoice(supplier, subject, new Random('invoice', seed, at), name);
  }
}
