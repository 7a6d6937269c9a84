import { isIP } from 'node:net';
import { z } from 'zod';

/** `quota` in each `windowSeconds`, of which `burst` may come at once. */
export interface RateSetting {
  quota: number;
  windowSeconds: number;
  burst: number;
}

const WINDOW_SECONDS: Record<string, number> = { s: 1, min: 60, h: 3_600, d: 86_400 };
const RATE = /^([1-9]\d{0,8})\/(s|min|h|d)(?: burst ([1-9]\d{0,8}))?$/;
const AT_ONCE_MAX = 1_000;

/** Parses `600/min` or `600/min burst 100`; without a burst, the whole quota may come at once. */
export function parseRate(text: string): RateSetting | undefined {
  const [, quota, unit, burst] = RATE.exec(text.trim()) ?? [];
  if (quota === undefined || unit === undefined) return undefined;
  return {
    quota: Number(quota),
    windowSeconds: WINDOW_SECONDS[unit] as number,
    burst: Number(burst ?? quota),
  };
}

function rate(shownDefault: string, meaning: string) {
  return {
    schema: z
      .string()
      .refine((text) => parseRate(text) !== undefined)
      .default(shownDefault)
      .transform((text) => parseRate(text) as RateSetting),
    shownDefault,
    meaning,
    remedy: `give a number for each s, min, h or d, and how many may come at once if fewer: for example ${shownDefault}`,
  };
}

function atOnce(name: string, shownDefault: number, meaning: string) {
  return {
    schema: z
      .string()
      .regex(/^\d{1,4}$/)
      .default(String(shownDefault))
      .transform(Number)
      .refine((value) => value >= 1 && value <= AT_ONCE_MAX),
    shownDefault: String(shownDefault),
    meaning,
    remedy: `give a whole number from 1 to ${AT_ONCE_MAX}, for example ${name}=${shownDefault}`,
  };
}

/** Addresses and networks, separated by commas; undefined: one is neither. */
export function parseNetworks(text: string): string[] | undefined {
  const networks = text.split(',').map((part) => part.trim());
  return networks.every(isNetwork) ? networks : undefined;
}

function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 6 ? 128 : 32));
}

/** The settings of limits; docs/limits.md describes them. */
export const LIMIT_SETTINGS = {
  RATE_LIMITS: {
    schema: z
      .string()
      .toLowerCase()
      .pipe(z.stringbool({ truthy: ['on', 'true', '1'], falsy: ['off', 'false', '0'] }))
      .default(true),
    shownDefault: 'on',
    meaning: 'off: none of the limits below holds.',
    remedy: 'give on or off',
  },
  RATE_LIMIT_READS: rate('600/min burst 100', 'Requests of a key that read, exports among them.'),
  RATE_LIMIT_WRITES: rate('120/min', 'Requests of a key that change something, ingest aside.'),
  RATE_LIMIT_INGEST: rate('3000/min', 'Requests of a key that send calls.'),
  RATE_LIMIT_INGEST_ITEMS: rate('600000/min', 'Items in the requests of a key that send calls.'),
  RATE_LIMIT_RUNS: rate(
    '30/h',
    'Gap runs that an organization starts; re-pricings, savings runs and syncs likewise, each for itself.',
  ),
  RATE_LIMIT_IMPORTS: rate('120/h', 'Bills that an organization uploads.'),
  RATE_LIMIT_INVOICES: rate('120/h', 'Invoices that an organization uploads or has read again.'),
  RATE_LIMIT_PUBLIC: rate(
    '120/min',
    'Requests without a key of an address: the price table and the documents.',
  ),
  RATE_LIMIT_FAILED_AUTH: rate(
    '20/min',
    'Requests of an address with a key that is none: answered 401, beyond it 429.',
  ),
  OPEN_RUNS_MAX: atOnce(
    'OPEN_RUNS_MAX',
    2,
    'Gap runs that an organization has open at once; re-pricings, savings runs and syncs likewise.',
  ),
  OPEN_IMPORTS_MAX: atOnce(
    'OPEN_IMPORTS_MAX',
    10,
    'Uploaded bills of an organization that are not read yet.',
  ),
  OPEN_INVOICES_MAX: atOnce('OPEN_INVOICES_MAX', 50, 'Invoices of an organization that wait or are read.'),
  OPEN_EXPORTS_MAX: atOnce('OPEN_EXPORTS_MAX', 2, 'Exports of an organization that go on at once.'),
  TRUSTED_PROXIES: {
    schema: z
      .string()
      .refine((text) => parseNetworks(text) !== undefined)
      .transform((text) => parseNetworks(text) as string[])
      .optional(),
    shownDefault: '(none)',
    meaning:
      'Proxies whose X-Forwarded-For header is trusted for the client’s address: addresses and networks, with commas between.',
    remedy: 'give addresses or networks, for example TRUSTED_PROXIES=10.0.0.0/8,127.0.0.1',
  },
} as const;
