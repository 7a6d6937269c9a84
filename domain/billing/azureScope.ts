/** The part of Azure that a connection reads, as Azure's resource manager writes it. */
export interface AzureScope {
  /** The path in front of the query: letters in the case in which they were given, no slash at the end. */
  path: string;
  /** The subscription's id, or that of the billing account or management group: whose bill it is. */
  account: string;
  /** Within a subscription charges are told by resource; above it Azure tells them by subscription only. */
  groupsByResource: boolean;
  /** The resource group that the subscription is narrowed to. */
  resourceGroup: string | null;
}

const GUID = '[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}';
/** Names neither begin nor end with a dot, so none leads out of its place in a path. */
const NAME = '[A-Za-z0-9_()](?:[A-Za-z0-9_.()-]{0,88}[A-Za-z0-9_()-])?';
/** A billing account of a Customer Agreement has two ids and a date with colons and underscores between. */
const BILLING = '[A-Za-z0-9](?:[A-Za-z0-9_:.-]{0,198}[A-Za-z0-9_-])?';

const SUBSCRIPTION = new RegExp(`^/subscriptions/(${GUID})(?:/resourceGroups/(${NAME}))?$`, 'i');
const ABOVE = new RegExp(
  `^/providers/Microsoft\\.(?:Billing/billingAccounts/(${BILLING})(?:/(?:billingProfiles|departments|enrollmentAccounts|invoiceSections|customers)/${BILLING}){0,2}|Management/managementGroups/(${NAME}))$`,
  'i',
);

/** A scope from its text, `subscriptions/…` with or without the slashes around it; undefined where it is none. */
export function parseAzureScope(text: string): AzureScope | undefined {
  const path = `/${text.trim().replace(/^\/+|\/+$/g, '')}`;
  const [, subscription, resourceGroup] = SUBSCRIPTION.exec(path) ?? [];
  if (subscription !== undefined) {
    return {
      path,
      account: subscription.toLowerCase(),
      groupsByResource: true,
      resourceGroup: resourceGroup?.toLowerCase() ?? null,
    };
  }
  const [, billingAccount, group] = ABOVE.exec(path) ?? [];
  const account = billingAccount ?? group;
  return account === undefined ? undefined : { path, account, groupsByResource: false, resourceGroup: null };
}
