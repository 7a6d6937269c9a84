import type { Logger } from 'pino';
import type { ApiDeps } from '../../api/deps.js';
import type { Endpoint } from '../../api/endpoint.js';
import type { Changes } from '../../db/changeFeed.js';
import type { Database } from '../../db/client.js';
import type { LimitRules } from '../../domain/access/limits/rate.js';
import type { HTTP_LIMITS } from '../../platform/serverLimits.js';

/** What the API is wired with. */
export interface ApiServerOptions
  extends Pick<
    ApiDeps,
    'kickDispatcher' | 'engineStatus' | 'moveClaim' | 'connectors' | 'outbound' | 'secretKeys'
  > {
  database: Database;
  /** Asks Postgres alone when absent. */
  storageStatus?: ApiDeps['storageStatus'];
  /** What is served; the whole surface where nothing is said. */
  endpoints?: readonly Endpoint[];
  /** Absent: what is remembered of keys is trusted for its few seconds. */
  changes?: Changes;
  logger: Logger;
  checkResponses: boolean;
  baseUrl: () => string;
  loopback: boolean;
  metricsToken: string | undefined;
  ingestMaxBodyBytes: number;
  eventRetentionDays: number | undefined;
  /** Absent: no rate and no number of runs or exports is limited. */
  limits?: LimitRules | undefined;
  /** The clock of the limits, milliseconds that only grow; the process's own when absent. */
  limitsNowMs?: () => number;
  /** Longest wait for the limits that instances share, milliseconds; a quarter of a second when absent. */
  limitsStoreMs?: number;
  /** Requests under way at once; as the service has it when absent. */
  requestsMax?: Record<'ingest' | 'other', number>;
  /** Others than those of platform/serverLimits.ts. */
  httpLimits?: Partial<Record<keyof typeof HTTP_LIMITS, number>>;
  /** Addresses and networks whose X-Forwarded-For is believed; none when absent. */
  trustedProxies?: readonly string[];
  /** Host names besides that of `baseUrl` under which requests are answered; none when absent. */
  allowedHosts?: readonly string[];
  /** Origins whose pages may call the API from a browser; none when absent. */
  corsOrigins?: readonly string[];
  /** Default: a year. */
  hstsMaxAgeSeconds?: number;
  /** How long a key's row is trusted while nothing is told of it; a few seconds when absent. */
  keyCacheMs?: number;
}
