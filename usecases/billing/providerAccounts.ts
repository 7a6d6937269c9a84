import type { BillingConnector } from '../../adapters/billing/connector.js';
import type { BillingConnectors } from '../../adapters/billing/connectors.js';
import { type BillingConnection, findBillingConnection } from '../../db/billing/billingConnections.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { ConnectionSettings, Credentials } from '../../domain/billing/connections.js';
import { DomainError, invalidField } from '../../domain/errors.js';
import { findUuid } from '../../domain/ids.js';
import { findProvider } from '../../domain/providers.js';

/** Requests to a provider whose bills are connected, or are about to be. */

/** Longest wait of a request for a provider, milliseconds. */
const PROVIDER_WAIT_MS = 10_000;
const PROVIDER_RETRY_SECONDS = 30;

/** The setting by which each provider narrows the account. */
const SCOPE_FIELDS: Readonly<Record<string, keyof NonNullable<ConnectionSettings['scope']>>> = {
  openai: 'projects',
  anthropic: 'workspaces',
  azure_openai: 'resource',
  aws_bedrock: 'accounts',
};

/** The connection behind a public id. Error not_found. */
export async function getConnection(orgDb: OrgDb, id: string): Promise<BillingConnection> {
  const uuid = findUuid('con', id);
  const connection = uuid === undefined ? undefined : await findBillingConnection(orgDb, uuid);
  if (!connection) throw new DomainError('not_found', 'there is no billing connection with this id');
  return connection;
}

/** The connector of a provider by any of its names. Error: invalid_body when no connector exists for it. */
export function connectorOf(deps: { connectors: BillingConnectors }, provider: string): BillingConnector {
  const byName: Readonly<Record<string, BillingConnector | undefined>> = deps.connectors;
  const connector = byName[findProvider(provider) ?? provider];
  if (connector) return connector;
  const known = Object.keys(deps.connectors).join(', ');
  throw invalidField(
    'body',
    'provider',
    `the bills of ${known} can be fetched so far; those of others are imported as files`,
    'invalid_body',
  );
}

/** Throws invalid_body for a credential that the provider does not use, or for a missing one. */
export function checkCredentials(connector: BillingConnector, credentials: Credentials): void {
  const names = connector.facts.credentialNames;
  const all = [...names, ...(connector.facts.optionalCredentialNames ?? [])];
  for (const name of Object.keys(credentials)) {
    if (!all.includes(name)) {
      const known = `${connector.provider} takes ${all.join(', ')}`;
      throw invalidField('body', `credentials.${name}`, `is not known; ${known}`, 'invalid_body');
    }
  }
  for (const name of names) {
    if (credentials[name] === undefined)
      throw invalidField('body', `credentials.${name}`, 'is required', 'invalid_body');
  }
}

/** Throws invalid_body when the provider does not narrow by this setting, or requires a missing one. */
export function checkScope(connector: BillingConnector, settings: ConnectionSettings): void {
  const fault = connector.settingsFault?.(settings);
  if (fault) throw invalidField('body', `settings.${fault.field}`, fault.message, 'invalid_body');
  for (const field of Object.keys(settings.scope ?? {})) {
    const own = SCOPE_FIELDS[connector.provider];
    if (field !== own) {
      const message = own ? `${connector.provider} is narrowed by ${own}` : 'is not known here';
      const place = field === 'resource' ? 'settings.scope' : `settings.scope.${field}`;
      throw invalidField('body', place, message, 'invalid_body');
    }
  }
}

/**
 * Sends a request to a provider, for ten seconds at most. Errors: provider_unavailable and provider_rate_limited;
 * invalid_body, naming the credential, when the provider refuses it.
 */
export async function askProvider<T>(
  connector: BillingConnector,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = AbortSignal.timeout(PROVIDER_WAIT_MS);
  try {
    return await ask(AbortSignal.any([signal, deadline]));
  } catch (error) {
    if (deadline.aborted) {
      throw new DomainError(
        'provider_unavailable',
        `${connector.provider} did not answer within ${PROVIDER_WAIT_MS / 1_000} s; nothing was changed, try again`,
        { retryAfterSeconds: PROVIDER_RETRY_SECONDS, cause: error },
      );
    }
    if (error instanceof DomainError && error.code === 'credentials_refused') {
      const field = `credentials.${connector.facts.credentialNames[0] ?? ''}`;
      throw invalidField('body', field, error.message, 'invalid_body');
    }
    throw error;
  }
}

/**
 * The account of the credentials: as the provider reports it, else as the settings name it. Error: invalid_body when
 * the two differ, or neither names one.
 */
export async function identifyAccount(
  connector: BillingConnector,
  credentials: Credentials,
  settings: ConnectionSettings,
  signal: AbortSignal,
): Promise<string> {
  const { accountId } = await askProvider(connector, signal, (limited) =>
    connector.identify({ credentials, settings, signal: limited }),
  );
  const named = settings.account;
  if (accountId !== null && named !== undefined && accountId !== named) {
    throw invalidField(
      'body',
      'settings.account',
      `the credentials belong to the account ${accountId}; leave this out`,
      'invalid_body',
    );
  }
  const account = accountId ?? named;
  if (account !== undefined) return account;
  throw invalidField(
    'body',
    'settings.account',
    `is required: ${connector.provider} does not say whose credentials these are; give the id of the organization as its settings page shows it (OpenAI: org-…; AWS: the twelve digits of the account that pays)`,
    'invalid_body',
  );
}

/** The settings with a change applied. Errors: account_mismatch when the change names another account; invalid_body. */
export function changedSettings(
  connector: BillingConnector,
  connection: BillingConnection,
  given: ConnectionSettings,
): ConnectionSettings {
  checkScope(connector, given);
  if (given.account !== undefined && given.account !== connection.accountId) throw otherAccount(connection);
  const named = connector.accountOfSettings?.(given) ?? connection.accountId;
  if (named !== connection.accountId) throw otherAccount(connection);
  return { ...given, account: connection.accountId };
}

/** Throws account_mismatch when the credentials are of another account; also the errors of `askProvider`. */
export async function checkSameAccount(
  connector: BillingConnector,
  connection: BillingConnection,
  credentials: Credentials,
  signal: AbortSignal,
): Promise<void> {
  checkCredentials(connector, credentials);
  const { accountId } = await askProvider(connector, signal, (limited) =>
    connector.identify({ credentials, settings: connection.settings, signal: limited }),
  );
  if (accountId !== null && accountId !== connection.accountId) throw otherAccount(connection);
}

function otherAccount(connection: BillingConnection): DomainError {
  return new DomainError(
    'account_mismatch',
    `the connection reads the account ${connection.accountId}; make another connection for another account`,
  );
}
