import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type components, fieldError, isProblem, query } from '../../api/client';
import { time } from '../../app/format';
import { useMay, useSession } from '../../app/session';
import { Button } from '../../parts/forms/Button';
import { Checkbox } from '../../parts/forms/Checkboxes';
import { Form, Select, TextField } from '../../parts/forms/Fields';
import { FormError } from '../../parts/forms/FormError';
import { Card, Facts, Page } from '../../parts/Page';
import { ErrorState, Loading, Notice } from '../../parts/States';
import { useToast } from '../../parts/Toasts';
import DemoControl from './DemoControl';
import { SettingsTabs } from './SettingsTabs';

const PATH = '/api/v1/organization';
type Organization = components['schemas']['Organization'];
type Allocation = Organization['settings']['chargeback_allocation'];

const ALLOCATIONS: { value: Allocation; label: string }[] = [
  { value: 'none', label: 'Not at all: shown as unlabelled' },
  { value: 'by_share', label: 'By what the others cost' },
  { value: 'even', label: 'To each the same' },
];

export default function OrganizationSettings() {
  const may = useMay();
  const session = useSession();
  const organization = query.useQuery('get', PATH, {}, { enabled: may({ scope: 'usage:read' }) });
  return (
    <Page
      title="Organization"
      lead="Settings that hold for everybody who uses this organization."
      tabs={<SettingsTabs />}
    >
      {!may({ scope: 'usage:read' }) ? (
        <Notice>Your key cannot read the settings of the organization.</Notice>
      ) : organization.isPending ? (
        <Loading />
      ) : organization.error ? (
        <ErrorState error={organization.error} retry={() => void organization.refetch()} />
      ) : (
        <>
          <Card>
            <Facts
              items={[
                ['Id', <code key="id">{organization.data.id}</code>],
                ['Created', time(organization.data.created_at)],
                ['Time now', time(new Date().toISOString(), organization.data.settings.time_zone)],
              ]}
            />
          </Card>
          <Card title="Settings">
            <div style={{ maxWidth: 640 }}>
              <SettingsForm key={JSON.stringify(organization.data)} present={organization.data} />
            </div>
          </Card>
          {may({ scope: 'org:admin' }) && !session.organization.is_demo && session.workspace === null && (
            <Card title="Demo">
              <p>Demo Labs is an invented company in an organization of its own, to look around in.</p>
              <DemoControl isRemovable />
            </Card>
          )}
        </>
      )}
    </Page>
  );
}

const ZONES = Intl.supportedValuesOf('timeZone');

const scopeLines = ({ counted_scopes: scopes }: Organization['settings']) =>
  scopes.map(({ service, scope }) => `${service ?? ''} / ${scope}`).join('\n');

/** Lines `service / scope`; an empty service means calls that name none. */
function parseScopes(text: string) {
  return linesOf(text).map((line) => {
    const at = line.indexOf('/');
    const service = at < 0 ? line : line.slice(0, at).trim();
    return { service: service || null, scope: at < 0 ? '' : line.slice(at + 1).trim() };
  });
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

function SettingsForm({ present }: { present: Organization }) {
  const client = useQueryClient();
  const toast = useToast();
  const mayWrite = useMay()({ scope: 'org:admin' });
  const { settings } = present;
  const [name, setName] = useState(present.name);
  const [zone, setZone] = useState(settings.time_zone);
  const [holidays, setHolidays] = useState(settings.holidays.join('\n'));
  const [isDropping, setIsDropping] = useState(settings.drop_payloads);
  const [scopes, setScopes] = useState(scopeLines(settings));
  const [allocation, setAllocation] = useState(settings.chargeback_allocation);
  const rename = query.useMutation('patch', PATH);
  const change = query.useMutation('patch', `${PATH}/settings`);
  const error = rename.error ?? change.error;
  const isBusy = rename.isPending || change.isPending;
  const save = async () => {
    try {
      await change.mutateAsync({
        body: {
          time_zone: zone.trim(),
          holidays: linesOf(holidays),
          drop_payloads: isDropping,
          counted_scopes: parseScopes(scopes),
          chargeback_allocation: allocation,
        },
      });
      if (name.trim() !== present.name) await rename.mutateAsync({ body: { name: name.trim() } });
    } catch {
      // The form shows the error of the mutation.
      return;
    }
    await Promise.all([
      client.invalidateQueries({ queryKey: ['get', PATH] }),
      client.invalidateQueries({ queryKey: ['get', '/api/v1/session'] }),
    ]);
    toast('The settings are saved.');
  };
  const listError = (field: string) =>
    isProblem(error)
      ? error.errors
          ?.filter((one) => one.field === field || one.field.startsWith(`${field}[`))
          .map((one) => `${one.field}: ${one.message}`)
          .join(' · ') || undefined
      : undefined;
  return (
    <Form
      onSubmit={() => void save()}
      actions={
        mayWrite ? (
          <Button kind="primary" type="submit" isPending={isBusy} isDisabled={name.trim() === ''}>
            {isBusy ? 'Saving …' : 'Save'}
          </Button>
        ) : (
          <p style={{ color: 'var(--muted)' }}>An admin can change these settings.</p>
        )
      }
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        isReadOnly={!mayWrite}
        error={fieldError(rename.error, 'name')}
      />
      <Zone value={zone} onChange={setZone} isReadOnly={!mayWrite} error={fieldError(error, 'time_zone')} />
      <TextField
        label="Public holidays, one a line"
        value={holidays}
        onChange={setHolidays}
        lines={4}
        placeholder="2026-12-25"
        isReadOnly={!mayWrite}
        help="Deadlines that fall on a holiday move to the next working day."
        error={listError('holidays')}
      />
      <Select
        label="Chargeback of spend without a label"
        value={allocation}
        options={ALLOCATIONS}
        onChange={setAllocation}
        isDisabled={!mayWrite}
      />
      <TextField
        label="Instrumentation scopes that count, one “service / scope” a line"
        value={scopes}
        onChange={setScopes}
        lines={3}
        placeholder="checkout-api / opentelemetry.instrumentation.openai"
        isReadOnly={!mayWrite}
        help="For a service that is instrumented twice: only its scopes named here count, from the next call on."
        error={listError('counted_scopes')}
      />
      <Checkbox isSelected={isDropping} onChange={setIsDropping} isDisabled={!mayWrite}>
        Do not store prompts and answers, from the next call on
      </Checkbox>
      <FormError error={error} shown={['name', 'time_zone']} />
    </Form>
  );
}

function Zone(props: {
  value: string;
  onChange: (value: string) => void;
  isReadOnly: boolean;
  error: string | undefined;
}) {
  const isKnown = ZONES.includes(props.value) || props.value === 'UTC';
  return (
    <TextField
      {...props}
      label="Time zone"
      placeholder="Europe/Berlin"
      help={`For what is shown or scheduled in local time; sums are by UTC day.${isKnown ? '' : ' This browser does not know the zone.'}`}
    />
  );
}
