import { useState } from 'react';
import { fieldError, query } from '../../api/client';
import { Button } from '../../parts/forms/Button';
import { Form, Select, TextField } from '../../parts/forms/Fields';
import { FormError } from '../../parts/forms/FormError';
import { CONNECTORS, type Connection, type ConnectorName, connectorOf } from './connectors';

/** Connects a provider's bills. The API tries the credentials before it keeps them. */
export function ConnectForm({
  onConnected,
  onClose,
}: {
  onConnected: (connection: Connection) => void;
  onClose: () => void;
}) {
  const [provider, setProvider] = useState<ConnectorName>('openai');
  const [name, setName] = useState('');
  const [credentials, setCredentials] = useState<Record<string, string>>({});
  const [account, setAccount] = useState('');
  const [region, setRegion] = useState('');
  const [scope, setScope] = useState('');
  const [rate, setRate] = useState('');
  const connect = query.useMutation('post', '/api/v1/billing-connections', { onSuccess: onConnected });
  const connector = connectorOf(provider);
  if (!connector) return null;
  const errorOf = (field: string) => fieldError(connect.error, field);
  const isComplete =
    connector.credentials.every((field) => field.isOptional || credentials[field.name]?.trim()) &&
    (connector.scope.field !== 'resource' || scope.trim() !== '');
  const submit = () =>
    connect.mutate({
      body: {
        provider,
        ...(name.trim() ? { name: name.trim() } : {}),
        credentials: credentialsOf(provider, credentials),
        settings: {
          ...(account.trim() ? { account: account.trim() } : {}),
          ...(provider === 'aws_bedrock' && region.trim() ? { region: region.trim() } : {}),
          ...(rate.trim() ? { fx_rate: rate.trim() } : {}),
          ...(scope.trim() ? { scope: scopeOf(connector.scope.field, scope) } : {}),
        },
      },
    });
  return (
    <Form
      onSubmit={submit}
      actions={
        <>
          <Button kind="primary" type="submit" isPending={connect.isPending} isDisabled={!isComplete}>
            {connect.isPending ? 'Trying the credentials …' : 'Connect'}
          </Button>
          <Button onPress={onClose}>Cancel</Button>
        </>
      }
    >
      <Select label="Provider" value={provider} options={CONNECTORS} onChange={setProvider} />
      <p style={{ color: 'var(--muted)' }}>{connector.help} Credentials are sealed and never shown again.</p>
      <CredentialFields
        provider={provider}
        values={credentials}
        onChange={setCredentials}
        error={connect.error}
      />
      <TextField
        label={connector.scope.label}
        help={connector.scope.help}
        value={scope}
        onChange={setScope}
        error={errorOf('settings.scope') ?? errorOf(`settings.scope.${connector.scope.field}`)}
      />
      {provider === 'aws_bedrock' && (
        <TextField
          label="Region (optional)"
          value={region}
          onChange={setRegion}
          help="The region that requests are signed for. Empty: us-east-1."
          error={errorOf('settings.region')}
        />
      )}
      <TextField
        label="Name (optional)"
        value={name}
        onChange={setName}
        error={errorOf('name')}
        help="The provider’s name where empty."
      />
      <details>
        <summary>More settings</summary>
        <TextField
          label="Account at the provider (optional)"
          value={account}
          onChange={setAccount}
          help="Only where the provider does not name the account of the credentials."
          error={errorOf('settings.account')}
        />
        <TextField
          label="US dollars for one unit of the bill’s currency (optional)"
          value={rate}
          onChange={setRate}
          help="For a bill that is not in dollars and names no rate, for example 1.0842."
          error={errorOf('settings.fx_rate')}
        />
      </details>
      <FormError
        error={connect.error}
        shown={[
          'name',
          'settings.scope',
          'settings.region',
          ...connector.credentials.map((field) => `credentials.${field.name}`),
        ]}
      />
    </Form>
  );
}

/** The credentials of a connector, each in its own field. */
export function CredentialFields({
  provider,
  values,
  onChange,
  error,
}: {
  provider: string;
  values: Record<string, string>;
  onChange: (values: Record<string, string>) => void;
  error: unknown;
}) {
  return connectorOf(provider)?.credentials.map(({ name, label, isSecret }) => (
    <TextField
      key={`${provider} ${name}`}
      label={label}
      type={isSecret ? 'password' : 'text'}
      autoComplete="off"
      value={values[name] ?? ''}
      onChange={(text) => onChange({ ...values, [name]: text })}
      error={fieldError(error, `credentials.${name}`)}
    />
  ));
}

/** The credentials that the connector knows and that are filled in. */
export function credentialsOf(provider: string, values: Record<string, string>): Record<string, string> {
  const fields = connectorOf(provider)?.credentials ?? [];
  return Object.fromEntries(
    fields.flatMap(({ name }) => (values[name]?.trim() ? [[name, values[name].trim()]] : [])),
  );
}

function scopeOf(field: 'projects' | 'workspaces' | 'accounts' | 'resource', text: string) {
  if (field === 'resource') return text.trim();
  const ids = text
    .split(',')
    .map((id) => id.trim())
    .filter(Boolean);
  return { [field]: ids };
}
