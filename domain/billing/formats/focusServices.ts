import type { Provider } from '../../providers.js';
import { isAzureModelCategory } from './azureTerms.js';
import { cellOf } from './cells.js';
import type { TableRecord } from './tableFormat.js';

/** ServiceProviderName from FOCUS 1.3 on, ProviderName before it; 1.3 has both. */
export const FOCUS_PROVIDER_COLUMNS = ['serviceprovidername', 'providername'] as const;

/**
 * How exports name who sells. FOCUS asks for a readable name and leaves the spelling to whoever writes the export, so a
 * name is compared without spaces, points and case.
 */
const SELLERS: Readonly<Record<Provider, RegExp>> = {
  openai: /^openai/,
  anthropic: /^anthropic/,
  google: /^google/,
  azure_openai: /^(?:microsoft|azure)/,
  aws_bedrock: /^(?:aws|amazon)/,
  mistral: /^mistral/,
  cohere: /^cohere/,
  xai: /^xai/,
};

/** Who sells much else: which of their services are those of language models. */
const SERVICES: Partial<Record<Provider, (record: TableRecord, service: string) => boolean>> = {
  aws_bedrock: (record, service) =>
    /bedrock/i.test(service) ||
    /bedrock/i.test(record.get('x_servicecode') ?? '') ||
    /^(?:[A-Z0-9]+-)?MP:/.test(record.get('x_usagetype') ?? ''),
  azure_openai: (record, service) =>
    isAzureModelCategory(service) ||
    isAzureModelCategory(record.get('x_skumetercategory') ?? '') ||
    /openai|\bfoundry\b/i.test(service),
  google: (_record, service) => /vertex ai|gemini|generative language/i.test(service),
};

/** Whether a charge is one of this provider's models: of its own services, or sold by it alone. */
export function isFocusChargeOf(provider: Provider, record: TableRecord): boolean {
  const seller = (cellOf(record, FOCUS_PROVIDER_COLUMNS) ?? '').toLowerCase().replace(/[^a-z0-9]/g, '');
  if (!SELLERS[provider].test(seller)) return false;
  const isOfService = SERVICES[provider];
  return isOfService?.(record, record.get('servicename') ?? '') ?? true;
}
