import type { components } from '../../api/client';

export type Connection = components['schemas']['BillingConnection'];

interface CredentialField {
  name: string;
  label: string;
  isOptional?: boolean;
  isSecret?: boolean;
}

/** A connector: the credentials that it needs, where they come from, and what narrows it. */
interface Connector {
  value: 'openai' | 'anthropic' | 'azure_openai' | 'aws_bedrock';
  label: string;
  credentials: readonly CredentialField[];
  help: string;
  /** Part of the account that one connection can be narrowed to; Azure needs one. */
  scope: { field: 'projects' | 'workspaces' | 'accounts' | 'resource'; label: string; help: string };
}

export const CONNECTORS: readonly Connector[] = [
  {
    value: 'openai',
    label: 'OpenAI',
    credentials: [{ name: 'admin_key', label: 'Admin key', isSecret: true }],
    help: 'An owner of the organization creates an admin key that may read usage and costs.',
    scope: {
      field: 'projects',
      label: 'Only these projects (optional)',
      help: 'Ids of projects, separated by commas. Empty: the whole organization.',
    },
  },
  {
    value: 'anthropic',
    label: 'Anthropic',
    credentials: [{ name: 'admin_key', label: 'Admin key', isSecret: true }],
    help: 'An admin of the organization creates an admin key in the Claude Console.',
    scope: {
      field: 'workspaces',
      label: 'Only these workspaces (optional)',
      help: 'Ids of workspaces, separated by commas; “default” is the default workspace. Empty: all.',
    },
  },
  {
    value: 'azure_openai',
    label: 'Azure OpenAI',
    credentials: [
      { name: 'tenant_id', label: 'Tenant id' },
      { name: 'client_id', label: 'Client id' },
      { name: 'client_secret', label: 'Client secret', isSecret: true },
    ],
    help: 'An app registration with the role Cost Management Reader on the scope.',
    scope: {
      field: 'resource',
      label: 'Scope',
      help: '/subscriptions/{id}, a resource group of it, or a billing account.',
    },
  },
  {
    value: 'aws_bedrock',
    label: 'AWS Bedrock',
    credentials: [
      { name: 'access_key_id', label: 'Access key id' },
      { name: 'secret_access_key', label: 'Secret access key', isSecret: true },
      { name: 'session_token', label: 'Session token (optional)', isOptional: true, isSecret: true },
    ],
    help: 'A user or role that may read Cost Explorer.',
    scope: {
      field: 'accounts',
      label: 'Only these accounts (optional)',
      help: 'Ids of linked accounts, separated by commas. Empty: all accounts.',
    },
  },
];

export type ConnectorName = Connector['value'];

export const connectorOf = (provider: string): Connector | undefined =>
  CONNECTORS.find(({ value }) => value === provider);

export const CONNECTION_STATUS: Record<
  Connection['status'],
  { label: string; kind: 'plain' | 'good' | 'warn' | 'bad' | 'accent' }
> = {
  connecting: { label: 'First sync', kind: 'accent' },
  active: { label: 'Active', kind: 'good' },
  failing: { label: 'Failing', kind: 'bad' },
  paused: { label: 'Paused', kind: 'plain' },
  ended: { label: 'Ended', kind: 'plain' },
};

export const TABS = [
  { href: '/connections', name: 'Connections' },
  { href: '/connections/imports', name: 'Bill files' },
  { href: '/connections/coverage', name: 'Coverage' },
];
