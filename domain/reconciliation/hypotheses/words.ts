import type { ObservedSource } from '../evidence/evidenceText.js';

/**
 * The sentence of a variant. A variant may carry a value after a colon (`tier:priority`); its sentence then stands under
 * the name before it and holds the value in place of `%`.
 */
export function sentenceOf(words: Readonly<Record<string, string>>, variant: string): string {
  const direct = words[variant];
  if (direct !== undefined) return direct;
  const colon = variant.indexOf(':');
  const name = colon < 0 ? variant : variant.slice(0, colon);
  return (words[name] ?? words.other ?? '').replaceAll('%', variant.slice(colon + 1));
}

/** The services to change, by name: "service billing-bot", "services a and b". */
export function servicesOf(sources: readonly ObservedSource[], all = false): string {
  const lacking = all ? [] : sources.filter((source) => source.callsWithoutCache > 0);
  const names = (lacking.length > 0 ? lacking : sources)
    .map((source) => (source.serviceName === '' ? 'that name no service' : source.serviceName))
    .sort();
  if (names.length === 0) return 'the calls of this model';
  const last = names.at(-1) ?? '';
  return names.length === 1 ? `service ${last}` : `services ${names.slice(0, -1).join(', ')} and ${last}`;
}
