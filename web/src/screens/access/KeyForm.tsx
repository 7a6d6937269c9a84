import { useState } from 'react';
import { type components, fieldError, query } from '../../api/client';
import { useMay, useSession } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { Checkbox, Checkboxes } from '../../parts/forms/Checkboxes';
import { DateField } from '../../parts/forms/DateField';
import { Form, Select, TextField } from '../../parts/forms/Fields';
import { FormError } from '../../parts/forms/FormError';
import { Notice } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import type { Key } from './Keys';

export type KeyWithSecret = components['schemas']['KeyWithSecret'];
type Role = Key['role'];
type Scope = NonNullable<Key['scopes']>[number];

const ROLES: { value: Role; label: string }[] = [
  { value: 'ingest', label: 'Ingest: sends calls, reads nothing' },
  { value: 'auditor', label: 'Auditor: reads, changes nothing' },
  { value: 'member', label: 'Member: works, decides nothing for the organization' },
  { value: 'admin', label: 'Admin: everything' },
];

/** Scopes that only the role admin holds; docs/access.md has the table. */
const ADMIN_ONLY: readonly Scope[] = [
  'billing:write',
  'pricing:write',
  'policies:write',
  'enforcement:write',
  'workspaces:admin',
  'keys:admin',
  'org:admin',
  'webhooks:admin',
];

function isOfRole(role: Role, scope: Scope): boolean {
  if (role === 'ingest') return scope === 'ingest';
  if (role === 'auditor') return scope.endsWith(':read');
  return role === 'admin' || !ADMIN_ONLY.includes(scope);
}

/** Makes a key, or changes the name, scopes and end of a present one. */
export function KeyForm({
  present,
  onMade,
  onChanged,
  onClose,
}: {
  present?: Key;
  onMade?: (key: KeyWithSecret) => void;
  onChanged?: () => void;
  onClose: () => void;
}) {
  const session = useSession();
  const maySeeWorkspaces = useMay()({ scope: 'workspaces:read' });
  const toast = useToast();
  const [name, setName] = useState(present?.name ?? '');
  const [role, setRole] = useState<Role>(present?.role ?? 'ingest');
  const [isNarrow, setIsNarrow] = useState(present !== undefined && present.scopes !== null);
  const [scopes, setScopes] = useState<Scope[]>(present?.scopes ?? []);
  const [workspace, setWorkspace] = useState('');
  const [expires, setExpires] = useState(present?.expires_at?.slice(0, 10) ?? '');
  const workspaces = query.useQuery(
    'get',
    '/api/v1/workspaces',
    { params: { query: { archived: '0', limit: 500 } } },
    { enabled: maySeeWorkspaces && !present },
  );
  const create = query.useMutation('post', '/api/v1/keys', { onSuccess: (key) => onMade?.(key) });
  const change = query.useMutation('patch', '/api/v1/keys/{id}', {
    onSuccess: () => {
      toast('The key is changed.');
      onChanged?.();
    },
  });
  const error = create.error ?? change.error;
  const isBusy = create.isPending || change.isPending;
  const choices = session.scopes.filter((scope) => isOfRole(role, scope));
  const isEnded = present !== undefined && present.status !== 'active' && present.status !== 'rotating';
  const submit = () => {
    const body = {
      name: name.trim(),
      scopes: isNarrow ? scopes.filter((scope) => isOfRole(role, scope)) : null,
      expires_at: expires ? `${expires}T23:59:59Z` : null,
    };
    if (present) change.mutate({ params: { path: { id: present.id } }, body });
    else create.mutate({ body: { ...body, role, workspace_id: workspace || null } });
  };
  return (
    <Form
      onSubmit={submit}
      actions={
        <>
          {!isEnded && (
            <Button
              kind="primary"
              type="submit"
              isPending={isBusy}
              isDisabled={name.trim() === '' || (isNarrow && scopes.length === 0)}
            >
              {isBusy ? 'One moment …' : present ? 'Save' : 'Create'}
            </Button>
          )}
          <Button onPress={onClose}>{isEnded ? 'Close' : 'Cancel'}</Button>
        </>
      }
    >
      {isEnded && <Notice>This key is {present.status}. It cannot be changed.</Notice>}
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        error={fieldError(error, 'name')}
        isReadOnly={isEnded}
      />
      {!present && (
        <>
          <Select label="Role" value={role} options={ROLES} onChange={setRole} />
          {role !== 'admin' && (workspaces.data?.workspaces.length ?? 0) > 0 && (
            <Select
              label="Workspace"
              value={workspace}
              onChange={setWorkspace}
              options={[
                { value: '', label: 'The whole organization' },
                ...(workspaces.data?.workspaces ?? []).map(({ id, name: label }) => ({ value: id, label })),
              ]}
            />
          )}
        </>
      )}
      {role !== 'ingest' && (
        <Checkbox isSelected={isNarrow} onChange={setIsNarrow} isDisabled={isEnded}>
          Only chosen scopes of the role
        </Checkbox>
      )}
      {isNarrow && role !== 'ingest' && (
        <Checkboxes
          label="Scopes"
          value={scopes}
          options={choices.map((value) => ({ value, label: value }))}
          onChange={setScopes}
          error={fieldError(error, 'scopes')}
        />
      )}
      <DateField label="Last day, UTC (optional)" value={expires} onChange={setExpires} />
      <FormError error={error} shown={['name', 'scopes']} />
    </Form>
  );
}
