import { createHash } from 'node:crypto';
import { z } from 'zod';
import { DomainError } from '../../domain/errors.js';
import type { ProviderAccess } from './connector.js';
import { rateLimited, retryAfterOf } from './pacer.js';
import { OUTAGE_SECONDS } from './providerClient.js';

/** A token is replaced this long before it expires, so that it outlives every request of a page. */
const SPARE_MICROS = 300_000_000n;
/** Credentials whose tokens are cached. */
const TOKENS_MAX = 1_000;
const ANSWER_BYTES_MAX = 65_536;
const DEADLINE_MS = 20_000;
/** A directory's id or one of its domain names: characters that are safe in an address and a form. */
const TENANT = /^[A-Za-z0-9][A-Za-z0-9.-]{0,127}$/;

/** Addresses of Azure Resource Manager in the public and the sovereign clouds, which have separate logins. */
const MANAGERS: ReadonlySet<string> = new Set([
  'management.azure.com',
  'management.usgovcloudapi.net',
  'management.chinacloudapi.cn',
]);

const answerSchema = z.object({
  access_token: z.string().min(1).max(16_384),
  expires_in: z.coerce.number().int().min(1).max(86_400),
});

/**
 * Explanations of Microsoft Entra's error codes for people who connect (Microsoft documentation, "Microsoft Entra
 * authentication and authorization error codes").
 */
const REASONS: Readonly<Record<number, string>> = {
  90002: 'there is no directory with this tenant_id',
  900023: 'the tenant_id is no id or domain of a directory',
  700016: 'the directory has no application with this client_id',
  7000112: 'the application is disabled in the directory',
  7000215: 'the client_secret is wrong; give the value of the secret, not its id',
  7000222: 'the client_secret has expired; make a new one',
};

export interface AzureTokenOptions {
  /** `https://login.microsoftonline.com` or the login of another cloud. */
  loginBaseUrl: string;
  managementBaseUrl: string;
  nowMicros(): bigint;
  deadlineMs?: number;
}

interface Token {
  value: string;
  endsMicros: bigint;
  /** Whether a request has used it already. */
  isUsed: boolean;
}

/**
 * Access tokens of applications by OAuth 2.0 client credentials (Microsoft identity platform). Errors as
 * `BillingConnector`: credentials_refused names the faulty credential; no text of an answer is quoted.
 */
export class AzureTokens {
  readonly #options: AzureTokenOptions;
  readonly #tokens = new Map<string, Token>();

  constructor(options: AzureTokenOptions) {
    this.#options = options;
  }

  /** A token that is valid for some minutes at least. */
  async tokenOf(access: ProviderAccess): Promise<string> {
    const key = keyOf(access);
    const known = this.#tokens.get(key);
    if (known && known.endsMicros - SPARE_MICROS > this.#options.nowMicros()) {
      known.isUsed = true;
      return known.value;
    }
    const token = await this.#ask(access);
    this.#tokens.delete(key);
    this.#tokens.set(key, token);
    if (this.#tokens.size > TOKENS_MAX) this.#tokens.delete(this.#tokens.keys().next().value as string);
    return token.value;
  }

  /** Drops a refused token, so that the next request fetches another. false: the token was new. */
  forget(access: ProviderAccess): boolean {
    const key = keyOf(access);
    const wasUsed = this.#tokens.get(key)?.isUsed ?? false;
    this.#tokens.delete(key);
    return wasUsed;
  }

  async #ask({ credentials, signal }: ProviderAccess): Promise<Token> {
    const { tenant_id: tenant = '', client_id: client = '', client_secret: secret = '' } = credentials;
    if (!TENANT.test(tenant)) throw refused(REASONS[900023] as string);
    const base = new URL(this.#options.loginBaseUrl);
    base.pathname = `${base.pathname.replace(/\/+$/, '')}/${tenant}/oauth2/v2.0/token`;
    const deadline = AbortSignal.timeout(this.#options.deadlineMs ?? DEADLINE_MS);
    let response: Response;
    let text: string;
    try {
      response = await fetch(base, {
        method: 'POST',
        redirect: 'manual',
        signal: AbortSignal.any([signal, deadline]),
        headers: { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: client,
          client_secret: secret,
          scope: this.#scope(),
        }).toString(),
      });
      text = await readStart(response);
    } catch {
      if (signal.aborted) throw signal.reason;
      throw unavailable(
        deadline.aborted
          ? 'Microsoft’s login did not answer in time'
          : 'the connection to Microsoft’s login failed',
      );
    }
    if (response.status !== 200) throw this.#refusal(response, text);
    return this.#read(text);
  }

  /** The token scope: another cloud's manager has a separate one; a loopback address or a proxy uses the public one. */
  #scope(): string {
    const { host } = new URL(this.#options.managementBaseUrl);
    return `https://${MANAGERS.has(host) ? host : 'management.azure.com'}/.default`;
  }

  #read(text: string): Token {
    const parsed = answerSchema.safeParse(jsonOf(text));
    if (!parsed.success) {
      throw new DomainError(
        'provider_answer_unreadable',
        'the answer of Microsoft’s login cannot be read: it names no access token; check AZURE_LOGIN_BASE_URL',
      );
    }
    const { access_token: value, expires_in: seconds } = parsed.data;
    return { value, endsMicros: this.#options.nowMicros() + BigInt(seconds) * 1_000_000n, isUsed: false };
  }

  #refusal(response: Response, text: string): DomainError {
    const { status, headers } = response;
    if (status === 429)
      return rateLimited(
        'Microsoft’s login limits requests (429)',
        retryAfterOf(headers, this.#options.nowMicros()),
      );
    if (status >= 500 || status === 408) return unavailable(`Microsoft’s login answered ${status}`);
    if (status !== 400 && status !== 401 && status !== 403) {
      return new DomainError(
        'provider_answer_unreadable',
        `Microsoft’s login answered ${status}; check AZURE_LOGIN_BASE_URL`,
      );
    }
    const codes = errorCodesOf(text);
    const known = codes.find((code) => REASONS[code] !== undefined);
    return refused(
      known === undefined
        ? `Microsoft’s login refused the application${codes.length === 0 ? '' : ` (AADSTS${codes[0]})`}; check tenant_id, client_id and client_secret`
        : (REASONS[known] as string),
    );
  }
}

function keyOf({ credentials }: ProviderAccess): string {
  const { tenant_id: tenant, client_id: client, client_secret: secret } = credentials;
  return createHash('sha256')
    .update(JSON.stringify([tenant, client, secret]))
    .digest('hex');
}

function errorCodesOf(text: string): number[] {
  const codes = (jsonOf(text) as { error_codes?: unknown } | null)?.error_codes;
  return Array.isArray(codes) ? codes.filter((code): code is number => Number.isSafeInteger(code)) : [];
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

async function readStart(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function refused(reason: string): DomainError {
  return new DomainError(
    'credentials_refused',
    `Azure refused the credentials: ${reason} (Microsoft Entra admin center → App registrations)`,
  );
}

function unavailable(sentence: string): DomainError {
  return new DomainError('provider_unavailable', sentence, { retryAfterSeconds: OUTAGE_SECONDS });
}
