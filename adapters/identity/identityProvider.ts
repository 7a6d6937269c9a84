import {
  AuthorizationResponseError,
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type Configuration,
  calculatePKCECodeChallenge,
  discovery,
  fetchUserInfo,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from 'openid-client';

/** Longest wait for an answer of the provider, seconds. */
const TIMEOUT_SECONDS = 10;
/** Time after which the provider's description of itself is read again, milliseconds. */
const METADATA_MS = 3_600_000;

export interface IdentitySettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** The claim with a person's groups; asked for as a scope too where the provider has one of this name. */
  roleClaim: string;
}

/** The state that the browser keeps while a person signs in at the provider: it ties the answer to this request. */
export interface PendingSignIn {
  state: string;
  nonce: string;
  /** Of PKCE: proves at the exchange of the code that it is used by its requester (RFC 7636). */
  verifier: string;
}

/** Statements of the provider about a person. */
export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string };

/** `denied`: by the person or the provider; `invalid`: the answer does not belong to the request, or is forged. */
export type IdentityFailure = 'unavailable' | 'denied' | 'invalid';

export class IdentityError extends Error {
  constructor(
    readonly reason: IdentityFailure,
    cause: unknown,
  ) {
    super(`sign-in at the identity provider: ${reason}`, { cause });
    this.name = 'IdentityError';
  }
}

/** Sign-in at the OpenID provider of the settings: authorization code with state, nonce and PKCE. */
export class IdentityProvider {
  readonly #settings: IdentitySettings;
  readonly #nowMs: () => number;
  #found: { configuration: Promise<Configuration>; atMs: number } | undefined;

  constructor(settings: IdentitySettings, nowMs: () => number) {
    this.#settings = settings;
    this.#nowMs = nowMs;
  }

  /** The address at which a person signs in. Error: IdentityError unavailable. */
  async begin(redirectUri: string): Promise<{ address: string; pending: PendingSignIn }> {
    const configuration = await this.#discover();
    const pending = { state: randomState(), nonce: randomNonce(), verifier: randomPKCECodeVerifier() };
    const { roleClaim } = this.#settings;
    const hasRoleScope = configuration.serverMetadata().scopes_supported?.includes(roleClaim) ?? false;
    const address = buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: `openid profile email${hasRoleScope ? ` ${roleClaim}` : ''}`,
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await calculatePKCECodeChallenge(pending.verifier),
      code_challenge_method: 'S256',
    });
    return { address: address.href, pending };
  }

  /** Exchanges the code in the address of the return for what the provider states. Error: IdentityError. */
  async finish(returned: URL, { state, nonce, verifier }: PendingSignIn): Promise<Claims> {
    const configuration = await this.#discover();
    try {
      const tokens = await authorizationCodeGrant(configuration, returned, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const stated = tokens.claims();
      if (!stated) throw new TypeError('the provider issued no ID token');
      if (configuration.serverMetadata().userinfo_endpoint === undefined) return stated;
      // Providers may keep groups and e-mail out of the ID token.
      const more = await fetchUserInfo(configuration, tokens.access_token, stated.sub);
      return { ...stated, ...more };
    } catch (error) {
      throw new IdentityError(reasonOf(error), error);
    }
  }

  #discover(): Promise<Configuration> {
    const nowMs = this.#nowMs();
    if (this.#found && nowMs - this.#found.atMs < METADATA_MS) return this.#found.configuration;
    const { issuer, clientId, clientSecret } = this.#settings;
    const address = new URL(issuer);
    // The settings admit plain HTTP on this machine alone.
    const execute = address.protocol === 'http:' ? [allowInsecureRequests] : [];
    const configuration = discovery(address, clientId, clientSecret, undefined, {
      timeout: TIMEOUT_SECONDS,
      execute,
    }).catch((error: unknown) => {
      this.#found = undefined;
      throw new IdentityError('unavailable', error);
    });
    this.#found = { configuration, atMs: nowMs };
    return configuration;
  }
}

/** Codes of openid-client for answers that show a fault of the provider or its network. */
const UNAVAILABLE: ReadonlySet<string> = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
]);

function reasonOf(error: unknown): IdentityFailure {
  if (error instanceof AuthorizationResponseError) return 'denied';
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  const isFetchFailure = error instanceof TypeError && error.message === 'fetch failed';
  return isFetchFailure || UNAVAILABLE.has(String(code)) || String(cause?.code).startsWith('ECONN')
    ? 'unavailable'
    : 'invalid';
}
