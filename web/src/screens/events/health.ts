import type { paths } from '../../api/client';

export type IngestHealth =
  paths['/api/v1/ingest/health']['get']['responses'][200]['content']['application/json'];
export type Source = IngestHealth['sources'][number];
export type Metered = IngestHealth['metered'][number];

type CountOf = (source: Source) => number;

export const rejectedCalls: CountOf = (source) =>
  Object.values(source.rejected).reduce((sum, calls) => sum + calls, 0);

/** Facts that calls may lack: the number of such calls, and the remedy. */
export const CHECKS: readonly { id: string; name: string; calls: CountOf; todo: string; href?: string }[] = [
  {
    id: 'unmetered',
    name: 'Without usage',
    calls: (source) => source.unmetered,
    todo: 'The sender reports no token counts, often for streamed answers. Switch usage on in its settings (stream_options.include_usage at OpenAI).',
    href: '/prices/unpriced',
  },
  {
    id: 'unpriced',
    name: 'Unpriced',
    calls: (source) => source.unpriced,
    todo: 'Their cost is unknown and is in no total. Enter a price for the model, then price the calls again.',
    href: '/prices/unpriced',
  },
  {
    id: 'price_gaps',
    name: 'Assumed rate',
    calls: (source) => source.price_gaps,
    todo: 'Part of their price is assumed because no source states it. Enter the rate as an override.',
    href: '/prices/unpriced',
  },
  {
    id: 'unknown_biller',
    name: 'Unknown biller',
    calls: (source) => source.unknown_biller,
    todo: 'Their host is no provider that Trueup knows, so no bill can be compared. Send server.address or base_url of the provider.',
  },
  {
    id: 'rejected',
    name: 'Rejected',
    calls: rejectedCalls,
    todo: 'They were not stored. The reason names the field to mend in the sender.',
  },
  {
    id: 'not_counted',
    name: 'Not counted',
    calls: (source) => source.not_counted,
    todo: 'Another instrumentation of the service counts, as the settings of the organization say. Nothing is to be done.',
  },
];

/** Checks that found calls, with how many of all sources. */
export function problemsOf(sources: readonly Source[]) {
  return CHECKS.map((check) => ({
    ...check,
    total: sources.reduce((sum, source) => sum + check.calls(source), 0),
  })).filter(({ total }) => total > 0);
}
