import { DomainError } from '../errors.js';
import { parseScaled } from '../money.js';
import { type BilledClass, type BilledRow, categoryOfLabel, QUANTITY_SCALE } from './billedRow.js';
import {
  countOf,
  currencyCodeOf,
  emptyRow,
  type FxRate,
  findText,
  isPageObject,
  keepText,
  keepTextOrNull,
  type PageBucket,
  type PageKind,
  type PageObject,
  toPicoOrNull,
} from './pageRow.js';

/** `amount` is a decimal string in CENTS: two digits fewer than a dollar amount of the same scale. */
const CENT_DIGITS = 2;

const TOKEN_TYPES: Record<string, BilledClass> = {
  uncached_input_tokens: 'input',
  output_tokens: 'output',
  cache_read_input_tokens: 'cache_read',
  'cache_creation.ephemeral_5m_input_tokens': 'cache_write_5m',
  'cache_creation.ephemeral_1h_input_tokens': 'cache_write_1h',
};

/** Kinds of cost beside tokens: fees whose count no call contains. */
const FEE_TYPES: ReadonlySet<string> = new Set(['web_search', 'code_execution', 'session_usage']);

const CONTEXT_WINDOWS: Record<string, boolean> = { '0-200k': false, '200k-1M': true };

/** Places with a price of their own; `global` and `not_available` have the ordinary price. */
function regionOf(result: PageObject): string | null {
  const geo = findText(result.inference_geo);
  return geo === null || geo === 'global' || geo === 'not_available' ? null : keepText(geo);
}

function longContextOf(result: PageObject): boolean | null {
  return CONTEXT_WINDOWS[findText(result.context_window) ?? ''] ?? null;
}

/** The tier that sets the price: batch has its own flag, fast mode is in the field `speed`. */
function tierOf(result: PageObject): { serviceTier: string; isBatch: boolean } {
  const tier = findText(result.service_tier) ?? 'standard';
  if (tier === 'batch') return { serviceTier: 'standard', isBatch: true };
  const fast = findText(result.speed) === 'fast';
  return { serviceTier: fast ? 'fast' : keepText(tier), isBatch: false };
}

/**
 * One result of Anthropic's cost_report; a line without model and class is `other`. Error invalid_billing_file
 * unless the amount is in cents.
 */
export function anthropicCostRow(
  kind: PageKind,
  bucket: PageBucket,
  result: PageObject,
  fxRate: FxRate,
): BilledRow {
  const cents =
    typeof result.amount === 'string' ? parseScaled(result.amount, QUANTITY_SCALE - CENT_DIGITS) : undefined;
  if (cents === undefined)
    throw new DomainError('invalid_billing_file', 'amount must be a decimal string in cents');
  const currency = currencyCodeOf(result.currency, 'currency');
  const costType = findText(result.cost_type);
  const tokenClass =
    costType === null || costType === 'tokens' ? TOKEN_TYPES[findText(result.token_type) ?? ''] : undefined;
  const model = keepTextOrNull(findText(result.model));
  const isFee = costType !== null && FEE_TYPES.has(costType);
  const recognised = isFee || (tokenClass !== undefined && model !== null);
  const label = findText(result.description) ?? costType ?? '(no description)';
  return {
    ...emptyRow(kind, bucket),
    chargeCategory: categoryOfLabel(label, recognised, cents),
    lineItem: keepText(label),
    observable: !isFee,
    model: isFee ? null : model,
    tokenClass: isFee ? 'other' : (tokenClass ?? 'other'),
    ...tierOf(result),
    longContext: longContextOf(result),
    region: regionOf(result),
    project: keepTextOrNull(findText(result.workspace_id)),
    amountPico: toPicoOrNull(cents, currency, fxRate),
    currency,
    originalAmount: cents,
  };
}

/** One result of GET /v1/organizations/usage_report/messages: a row for each class, and one for web searches. */
export function anthropicUsageRows(kind: PageKind, bucket: PageBucket, result: PageObject): BilledRow[] {
  const base: BilledRow = {
    ...emptyRow(kind, bucket),
    lineItem: 'usage messages',
    model: keepTextOrNull(findText(result.model)),
    ...tierOf(result),
    longContext: longContextOf(result),
    region: regionOf(result),
    project: keepTextOrNull(findText(result.workspace_id)),
    apiKey: keepTextOrNull(findText(result.api_key_id)),
  };
  const written = isPageObject(result.cache_creation) ? result.cache_creation : {};
  const counts: [BilledClass, bigint][] = [
    ['input', countOf(result.uncached_input_tokens, 'uncached_input_tokens')],
    ['cache_read', countOf(result.cache_read_input_tokens, 'cache_read_input_tokens')],
    ['cache_write_5m', countOf(written.ephemeral_5m_input_tokens, 'ephemeral_5m_input_tokens')],
    ['cache_write_1h', countOf(written.ephemeral_1h_input_tokens, 'ephemeral_1h_input_tokens')],
    ['output', countOf(result.output_tokens, 'output_tokens')],
  ];
  const rows = counts
    .filter(([, quantity]) => quantity > 0n)
    .map(([tokenClass, quantity]): BilledRow => ({ ...base, tokenClass, quantity, quantityUnit: 'tokens' }));
  const tools = isPageObject(result.server_tool_use) ? result.server_tool_use : {};
  const searches = countOf(tools.web_search_requests, 'web_search_requests');
  if (searches > 0n) {
    rows.push({
      ...base,
      observable: false,
      tokenClass: 'other',
      quantity: searches,
      quantityUnit: 'web_search_requests',
    });
  }
  return rows;
}

/** Whether the grammar did not recognise the cost row; such rows are listed with the import. */
export function isUnparsed(row: BilledRow): boolean {
  return (
    row.feed === 'cost' && row.chargeCategory === 'usage' && row.tokenClass === 'other' && row.observable
  );
}
