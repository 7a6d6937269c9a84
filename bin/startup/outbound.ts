import { SafeFetch } from '../../adapters/outbound/safeFetch.js';
import type { Config } from '../../platform/config.js';

/** The way to addresses that users set, as the settings narrow and widen it. */
export function safeFetchOf(config: Pick<Config, 'outboundAllowedHosts'>): SafeFetch {
  return new SafeFetch({ allowedHosts: new Set(config.outboundAllowedHosts) });
}
