import type { LineCorrection } from '../../../domain/invoices/correctLine.js';
import { picoFromNumber } from '../../../domain/money.js';
import { correctInvoiceLine } from '../../../usecases/invoices/reviewInvoice.js';
import { getWholeInvoice } from '../../../usecases/invoices/storedInvoice.js';
import { type Endpoint, endpointGroup } from '../../endpoint.js';
import { invoiceSchema, presentInvoice } from '../invoices/wire.js';
import {
  correctLineBody,
  INVOICE_READ,
  INVOICE_TAG,
  INVOICE_WRITE,
  INVOICES_PATH,
  lineParams,
} from './wire.js';

const routes = endpointGroup({ tag: INVOICE_TAG, access: { read: INVOICE_READ, write: INVOICE_WRITE } });

routes.patch(`${INVOICES_PATH}/{id}/lines/{line}`, {
  operationId: 'correctInvoiceLine',
  summary: 'Correct what was read of a line',
  description:
    'What was read stays beside it. The arithmetic is checked again; where it agrees now, the invoice is compared with the bill again (status matching, poll it).',
  params: lineParams,
  body: correctLineBody,
  responses: { 200: { description: 'The invoice as it is now', schema: invoiceSchema } },
  problems: ['not_found', 'invoice_busy'],
  async handle(request, deps) {
    const { params, body, orgDb, afterCommit } = request;
    const correction = { ...params, correction: correctionOf(body) };
    await correctInvoiceLine(orgDb, correction, request, deps.nowMicros());
    afterCommit(() => deps.kickDispatcher());
    return { status: 200, body: presentInvoice(await getWholeInvoice(orgDb, params.id)) };
  },
});

type CorrectionBody = Record<'quantity' | 'unit_price' | 'tax', number | null | undefined> & {
  description?: string | undefined;
  amount?: number | undefined;
};

function correctionOf({ description, ...body }: Partial<CorrectionBody>): LineCorrection {
  const exact = (value: number | null | undefined) =>
    value === null || value === undefined ? value : (picoFromNumber(value) ?? 0n);
  const named = {
    description,
    quantity: exact(body.quantity),
    unitPrice: exact(body.unit_price),
    amount: exact(body.amount),
    tax: exact(body.tax),
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}

export const invoiceLineEndpoints: readonly Endpoint[] = routes.endpoints;
