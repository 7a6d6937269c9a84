import type { BillingConnector } from '../../adapters/billing/connector.js';
import { type BillingConnectors, createBillingConnectors } from '../../adapters/billing/connectors.js';
import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import { fileBlobStore } from '../../adapters/blobs/fileBlobStore.js';
import { s3BlobStore } from '../../adapters/blobs/s3BlobStore.js';
import { IdentityProvider } from '../../adapters/identity/identityProvider.js';
import {
  createInvoiceExtractor,
  extractorSettings,
  type InvoiceExtractor,
  type InvoiceExtractorSettings,
} from '../../adapters/invoices/extractor.js';
import { type DeliverMail, smtpMailer } from '../../adapters/mail/smtpMailer.js';
import { type DeliverWebhook, deliverWebhookBy } from '../../adapters/outbound/deliverWebhook.js';
import { SafeFetch } from '../../adapters/outbound/safeFetch.js';
import { type FetchPriceFile, fetchPriceFileBy } from '../../adapters/prices/fetchPriceFile.js';
import type { ApiDeps } from '../../api/deps.js';
import { microsFromDate } from '../../domain/period.js';
import type { Config } from '../../platform/config.js';

/** The connectors to the providers' bills, at the configured addresses. */
export function connectorsOf(config: Config): BillingConnectors {
  return createBillingConnectors(
    {
      openai: config.openaiAdminBaseUrl,
      anthropic: config.anthropicAdminBaseUrl,
      azureManagement: config.azureManagementBaseUrl,
      azureLogin: config.azureLoginBaseUrl,
      awsCostExplorer: config.awsCostExplorerEndpoint,
    },
    { nowMicros: () => microsFromDate(new Date()), nowMs: () => performance.now() },
  );
}

/** Seconds between two syncs of a provider; undefined: it has no connector. */
export function pollSecondsOf(connectors: BillingConnectors): (provider: string) => number | undefined {
  const byName: Readonly<Record<string, BillingConnector | undefined>> = connectors;
  return (provider) => byName[provider]?.facts.pollIntervalSeconds;
}

/** Storage of uploaded files. */
export function blobStoreOf({ blobs }: Pick<Config, 'blobs'>): BlobStore {
  return blobs.store === 's3' ? s3BlobStore(blobs) : fileBlobStore(blobs.folder);
}

/** Reads invoices and renders their pages. */
export function invoiceExtractorOf(
  config: Pick<Config, 'invoices' | 'cacheDir'>,
  options: Pick<InvoiceExtractorSettings, 'spareMs'> = {},
): InvoiceExtractor {
  return createInvoiceExtractor({ ...extractorSettings(config), ...options });
}

/** The client for addresses that users set, with the configured exceptions. */
export function safeFetchOf(config: Pick<Config, 'outboundAllowedHosts'>): SafeFetch {
  return new SafeFetch({ allowedHosts: new Set(config.outboundAllowedHosts) });
}

/** Sends webhook attempts through the same client. */
export function webhookDeliveryOf(config: Pick<Config, 'outboundAllowedHosts'>): DeliverWebhook {
  return deliverWebhookBy(safeFetchOf(config), {
    nowMicros: () => microsFromDate(new Date()),
    nowMs: () => performance.now(),
  });
}

/** Fetches price lists through the same client. */
export function priceFileFetchOf(config: Pick<Config, 'outboundAllowedHosts'>): FetchPriceFile {
  return fetchPriceFileBy(safeFetchOf(config));
}

/** The API's dependencies outside of its database. */
export function outsideOfApi(config: Config) {
  return {
    connectors: connectorsOf(config),
    blobs: blobStoreOf(config),
    renderInvoicePage: invoiceExtractorOf(config).renderPage,
    outbound: safeFetchOf(config),
    deliverMail: mailerOf(config),
    identity: identityOf(config),
    priceFeeds: config.priceFeeds,
  };
}

/** The identity provider of the settings; undefined: none is set. */
function identityOf({ identity }: Pick<Config, 'identity'>): ApiDeps['identity'] {
  if (!identity) return undefined;
  const provider = new IdentityProvider(identity, () => performance.now());
  return { provider, rules: { ...identity, roles: new Map(identity.roles) } };
}

/** Sends mails by the configured server; undefined: none is set. */
export function mailerOf({ mail }: Pick<Config, 'mail'>): DeliverMail | undefined {
  return mail && smtpMailer(mail, { nowMs: () => performance.now() });
}
