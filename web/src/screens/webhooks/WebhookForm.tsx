import { useState } from 'react';
import { type components, fieldError, query } from '../../api/client';
import { Button } from '../../parts/forms/Button';
import { Checkbox, Checkboxes } from '../../parts/forms/Checkboxes';
import { Form, Select, TextField } from '../../parts/forms/Fields';
import { FormError } from '../../parts/forms/FormError';
import { type Endpoint, EVENT_TYPES, type EventType, FORMATS, WEBHOOKS } from './webhookWords';

export type EndpointWithSecret = components['schemas']['WebhookEndpointWithSecret'];

const HELP: Record<Endpoint['format'], string> = {
  standard: 'An https address of a receiver that checks the signature.',
  slack: 'The address of an incoming webhook of Slack.',
  teams: 'The address of a workflow webhook of Teams.',
  email: 'One address. Each mail has a link that ends the mails.',
};

/** Makes an endpoint of notifications, or changes one. Format and mail address stay for good. */
export function WebhookForm({
  present,
  onMade,
  onChanged,
  onClose,
}: {
  present?: Endpoint;
  onMade?: (endpoint: EndpointWithSecret) => void;
  onChanged?: () => void;
  onClose: () => void;
}) {
  const [format, setFormat] = useState<Endpoint['format']>(present?.format ?? 'standard');
  const [target, setTarget] = useState(present?.url ?? present?.to ?? '');
  const [description, setDescription] = useState(present?.description ?? '');
  const [isAll, setIsAll] = useState(!present || present.event_types.length === 0);
  const [types, setTypes] = useState<EventType[]>(present?.event_types ?? []);
  const [isDigest, setIsDigest] = useState(present?.digest === 'daily');
  const create = query.useMutation('post', WEBHOOKS, { onSuccess: (made) => onMade?.(made) });
  const change = query.useMutation('patch', `${WEBHOOKS}/{id}`, { onSuccess: () => onChanged?.() });
  const error = create.error ?? change.error;
  const isBusy = create.isPending || change.isPending;
  const submit = () => {
    const rest = {
      description: description.trim(),
      event_types: isAll ? [] : types,
      digest: isDigest ? ('daily' as const) : ('none' as const),
    };
    const place = format === 'email' ? { to: target.trim() } : { url: target.trim() };
    if (present) {
      const url = format !== 'email' && target.trim() !== present.url ? { url: target.trim() } : {};
      change.mutate({ params: { path: { id: present.id } }, body: { ...rest, ...url } });
    } else create.mutate({ body: { ...rest, ...place, format, enabled: true } });
  };
  return (
    <Form
      onSubmit={submit}
      actions={
        <>
          <Button
            kind="primary"
            type="submit"
            isPending={isBusy}
            isDisabled={target.trim() === '' || (!isAll && types.length === 0)}
          >
            {isBusy ? 'One moment …' : present ? 'Save' : 'Create'}
          </Button>
          <Button onPress={onClose}>Cancel</Button>
        </>
      }
    >
      {!present && <Select label="Send by" value={format} options={FORMATS} onChange={setFormat} />}
      <TextField
        label={format === 'email' ? 'E-mail address' : 'Address'}
        type={format === 'email' ? 'email' : 'url'}
        value={target}
        onChange={setTarget}
        isReadOnly={present?.format === 'email'}
        help={HELP[format]}
        error={fieldError(error, format === 'email' ? 'to' : 'url')}
      />
      <TextField label="Description (optional)" value={description} onChange={setDescription} />
      <Checkbox isSelected={isAll} onChange={setIsAll}>
        Every type, those to come included
      </Checkbox>
      {!isAll && <Checkboxes label="Types" value={types} options={EVENT_TYPES} onChange={setTypes} />}
      <Checkbox isSelected={isDigest} onChange={setIsDigest}>
        One message a day at 8 in the organization’s time zone, in place of single ones
      </Checkbox>
      <FormError error={error} shown={['url', 'to']} />
    </Form>
  );
}
