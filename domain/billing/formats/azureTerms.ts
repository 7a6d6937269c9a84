import { keepText } from '../pageRow.js';

/** Words that Azure's export and its query have in common. */

/** The meter categories under which Azure bills language models: the old name, and the new one since 2025. */
export const AZURE_MODEL_CATEGORIES = ['Cognitive Services', 'Foundry Models'] as const;

const CATEGORIES: ReadonlySet<string> = new Set([
  ...AZURE_MODEL_CATEGORIES.map((name) => name.toLowerCase()),
  'azure openai',
  'azure openai service',
]);

export function isAzureModelCategory(category: string): boolean {
  return CATEGORIES.has(category.trim().toLowerCase());
}

const UNIT = /^(\d{1,9})\s?([km])?(?:\s?tokens?)?$/i;
const FACTORS: Readonly<Record<string, bigint>> = { k: 1_000n, m: 1_000_000n };

/** Tokens of one unit of measure such as `1K`, `1M`, `1000 Tokens`; undefined where it is no count. */
export function azureUnitTokens(unit: string | undefined): bigint | undefined {
  const [, count, factor] = UNIT.exec(unit?.trim() ?? '') ?? [];
  if (count === undefined || BigInt(count) === 0n) return undefined;
  return BigInt(count) * (factor === undefined ? 1n : (FACTORS[factor.toLowerCase()] as bigint));
}

const RESOURCE = /\/resourcegroups\/([^/]+)(?:\/.*)?\/([^/]+)$/i;

/** `group/name` of a resource id; null where there is none. Azure writes one id in different cases. */
export function resourceOf(resourceId: string | undefined | null): string | null {
  if (!resourceId) return null;
  const [, group, name] = RESOURCE.exec(resourceId) ?? [];
  const text = (group === undefined ? resourceId : `${group}/${name}`).toLowerCase();
  return keepText(text);
}
